/** The explorer's look around the graph and the timeline. Colours are the graph's; JupyterLab's own controls keep theirs. */

export const STYLE = `
.memviz-explorer { --mv-bg:#ffffff; --mv-ink:#1f2328; --mv-dim:#57606a; --mv-edge:#d5dae0; --mv-head:#f3f5f8; --mv-pick:#fff3bf;
  --mv-focus:#0b57d0; --mv-good:#0b6b45; --mv-warn:#8a4b00; --mv-bad:#b3261e;
  background:var(--mv-bg); color:var(--mv-ink); padding:8px; border-radius:6px; overflow:hidden; }
.memviz-explorer[data-theme=dark] { --mv-bg:#17191c; --mv-ink:#e6e8eb; --mv-dim:#a3abb5; --mv-edge:#3a4149; --mv-head:#22262b; --mv-pick:#4a4112;
  --mv-focus:#8ab4f8; --mv-good:#6fd6a4; --mv-warn:#ffb870; --mv-bad:#ff9e97; }
.memviz-explorer .memviz-page { display:none; }
.memviz-explorer .memviz-bar { display:flex; flex-wrap:wrap; align-items:center; gap:4px 10px; overflow:visible; }
.memviz-explorer .memviz-bar > * { margin-top:0; margin-bottom:0; }
.memviz-explorer .memviz-group { display:inline-flex; flex-wrap:wrap; align-items:center; gap:0 8px; width:auto; overflow:visible; }
.memviz-explorer .memviz-group label, .memviz-explorer .memviz-group .widget-label { color:var(--mv-ink); }
.memviz-explorer .memviz-error { color:var(--mv-bad); font-size:13px; line-height:1.35; white-space:normal; max-width:640px; height:auto; }
.memviz-explorer .memviz-error:empty { display:none; }
.memviz-explorer .memviz-note { color:var(--mv-dim); font-size:13px; height:auto; }
.memviz-explorer .memviz-views { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(400px,100%),1fr)); gap:8px; width:100%;
  overflow:visible; margin:6px 0; }
.memviz-explorer .memviz-views > * { min-width:0; width:auto; overflow:hidden; border:1px solid var(--mv-edge); border-radius:6px; }
.memviz-explorer .memviz-views > * > * { flex:1 1 100%; min-width:0; width:100%; }
.memviz-explorer .memviz-table { overflow:auto; max-height:360px; margin:4px 0; }
.memviz-explorer .memviz-table table { border-collapse:collapse; width:100%; font:13px/1.4 system-ui,sans-serif; color:var(--mv-ink); }
.memviz-explorer .memviz-table caption { text-align:left; font-weight:600; padding:4px 2px; color:var(--mv-ink); }
.memviz-explorer .memviz-table th { text-align:left; font-weight:500; color:var(--mv-dim); background:var(--mv-head); position:sticky; top:0; }
.memviz-explorer .memviz-table th, .memviz-explorer .memviz-table td { padding:3px 10px 3px 6px; border-bottom:1px solid var(--mv-edge);
  white-space:nowrap; max-width:300px; overflow:hidden; text-overflow:ellipsis; background-clip:padding-box; }
.memviz-explorer .memviz-table .number { text-align:right; font-variant-numeric:tabular-nums; }
.memviz-explorer .memviz-table tr[data-id] { cursor:pointer; }
.memviz-explorer .memviz-table tr[data-id]:hover td { background:var(--mv-head); }
.memviz-explorer .memviz-table tr[aria-selected=true] td { background:var(--mv-pick); }
.memviz-explorer .memviz-table tr:focus-visible { outline:2px solid var(--mv-focus); outline-offset:-2px; }
.memviz-explorer .memviz-table tr.muted td, .memviz-explorer .memviz-table td.muted { color:var(--mv-dim); }
.memviz-explorer .chip { border:1px solid currentColor; border-radius:9px; padding:0 8px; font-size:12px; }
.memviz-explorer .good { color:var(--mv-good); } .memviz-explorer .warn { color:var(--mv-warn); } .memviz-explorer .bad { color:var(--mv-bad); }
.memviz-explorer .chip.good::before { content:"✓ "; } .memviz-explorer .chip.bad::before { content:"✗ "; } .memviz-explorer .chip.warn::before { content:"≈ "; }
`;
