/** The stylesheet. Actions differ by colour and by dash, and every label names its action. */

export const STYLE = `
.memviz-graph { --bg:#ffffff; --ink:#1f2328; --dim:#57606a; --box:#f3f5f8; --edge:#b6bec8; --focus:#0b57d0; --pick:#fff3bf;
  --keep:#2f6fb7; --recompute:#b45309; --swap:#00766c; --reverse:#8b2fa0; --mixed:#5f6368;
  position:relative; background:var(--bg); color:var(--ink); font:12px system-ui,sans-serif; width:100%; }
.memviz-graph[data-theme=dark] { --bg:#17191c; --ink:#e6e8eb; --dim:#a3abb5; --box:#22262b; --edge:#4b535d; --focus:#8ab4f8; --pick:#4a4112;
  --keep:#7db4f5; --recompute:#ffa657; --swap:#4fd1c0; --reverse:#dd9bf0; --mixed:#b4bac2; }
.memviz-graph .scroll { overflow:auto; max-height:560px; }
.memviz-graph svg { display:block; }
.memviz-graph text { fill:var(--ink); pointer-events:none; }
.memviz-graph .dim { fill:var(--dim); }
.memviz-graph .row { cursor:pointer; outline:none; }
.memviz-graph .row rect { fill:var(--bg); stroke:var(--edge); rx:4; }
.memviz-graph .row.box rect { fill:var(--box); }
.memviz-graph .row.selected rect { fill:var(--pick); }
.memviz-graph .row:hover > rect, .memviz-graph .row:focus-visible > rect { stroke:var(--focus); stroke-width:2; }
.memviz-graph .row > rect.twisty { fill:transparent; stroke:none; }
.memviz-graph .ribbon { cursor:pointer; outline:none; }
.memviz-graph .ribbon path { fill:none; }
.memviz-graph .ribbon .hit { stroke:transparent; }
.memviz-graph .ribbon .line { stroke:var(--action); opacity:.7; }
.memviz-graph .ribbon:hover .line, .memviz-graph .ribbon:focus-visible .line, .memviz-graph .ribbon.selected .line { opacity:1; }
.memviz-graph .ribbon.selected .hit { stroke:var(--pick); }
.memviz-graph .ribbon:focus-visible .hit { stroke:var(--focus); opacity:.35; }
.memviz-graph .label { text-anchor:middle; paint-order:stroke; stroke:var(--bg); stroke-width:4px; fill:var(--action); font-size:11px; }
.memviz-graph .keep { --action:var(--keep); } .memviz-graph .recompute { --action:var(--recompute); }
.memviz-graph .swap { --action:var(--swap); } .memviz-graph .reverse { --action:var(--reverse); }
.memviz-graph .mixed { --action:var(--mixed); }
.memviz-graph .legend { display:flex; flex-wrap:wrap; gap:2px 14px; padding:4px 2px; color:var(--dim); }
.memviz-graph .legend svg { display:inline-block; vertical-align:middle; margin-right:4px; }
.memviz-graph .legend line { stroke:var(--action); stroke-width:4; }
.memviz-graph .status { min-height:1.4em; padding:2px; color:var(--dim); }
.memviz-graph .menu { position:absolute; z-index:5; min-width:150px; padding:4px; background:var(--bg); border:1px solid var(--edge);
  border-radius:6px; box-shadow:0 3px 12px rgba(0,0,0,.3); }
.memviz-graph .menu button { display:flex; gap:8px; align-items:center; width:100%; padding:4px 8px; border:0; border-radius:4px;
  background:none; color:inherit; font:inherit; text-align:left; cursor:pointer; }
.memviz-graph .menu button:hover, .memviz-graph .menu button:focus { background:var(--box); outline:2px solid var(--focus); }
.memviz-graph .menu button[aria-disabled=true] { color:var(--dim); cursor:not-allowed; }
.memviz-graph .menu button[aria-checked=true] { font-weight:bold; }
.memviz-graph .menu kbd { margin-left:auto; color:var(--dim); font:inherit; }
`;

/** Dashes in multiples of nothing but pixels; a thick line keeps its gaps. */
export const DASHES: Readonly<Record<string, string>> = {
  keep: "",
  recompute: "10 5",
  swap: "3 4",
  reverse: "14 4 3 4",
  mixed: "20 3",
};
