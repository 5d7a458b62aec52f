"""GPT-2 and ViT of the package ``transformers``, unchanged, with small configs, random weights and random inputs."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel, ViTConfig, ViTForImageClassification

from memviz.pytorch.step import TrainStep


def gpt2(*, layers: int = 4, width: int = 128, heads: int = 4, length: int = 128, batch: int = 8, vocabulary: int = 256) -> TrainStep:
    """Language modelling on random tokens, with the package's own dropout of 0.1."""
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        n_positions=length,
        vocab_size=vocabulary,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    tokens = torch.randint(vocabulary, (batch, length))
    return _step(GPT2LMHeadModel(config), {"input_ids": tokens, "labels": tokens}, "GPT-2")


def vit(*, layers: int = 4, width: int = 128, heads: int = 4, size: int = 64, patch: int = 8, batch: int = 8) -> TrainStep:
    """Classifying random images, with dropout 0.1."""
    torch.manual_seed(0)
    config = ViTConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        image_size=size,
        patch_size=patch,
        hidden_dropout_prob=0.1,
    )
    config.num_labels = 10
    inputs = {"pixel_values": torch.randn(batch, 3, size, size), "labels": torch.randint(10, (batch,))}
    return _step(ViTForImageClassification(config), inputs, "ViT")


def _step(model: torch.nn.Module, inputs: dict[str, torch.Tensor], title: str) -> TrainStep:
    model.train()
    return TrainStep(model, inputs, lambda output: output.loss, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), title=title)
