"""The look of the page: light and dark, phone and paper."""

__all__ = ["STYLE"]

STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6575;--page:#fff;--card:#f5f6f8;--line:#d8dce3;--calm:#aab2bf;
--c0:#0072b2;--c1:#c98500;--c2:#009e73;--c3:#d55e00;--c4:#b85c92;--c5:#3d9bd1;--c6:#8c6bb1;--c7:#7f7f7f;
--c8:#a08c00;--c9:#a6451c}
@media(prefers-color-scheme:dark){:root{--ink:#e7eaf0;--soft:#a3adbd;--page:#14181f;--card:#1e242e;--line:#3a4352;
--calm:#6b7585;--c0:#4ba3e3;--c1:#f0b83c;--c2:#2cc79a;--c3:#ff8a4c;--c4:#e39bc4;--c5:#8fd0f5;--c6:#b79bdc;
--c7:#b0b0b0;--c8:#d6c22e;--c9:#dd8258}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:60rem;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2;margin:.2rem 0 .8rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
h3{font-size:1rem;margin:0 0 .4rem}
p{margin:.4rem 0}
ul{padding-left:1.2rem;margin:.4rem 0}
.answer{background:var(--card);border-left:5px solid var(--c0);border-radius:4px;padding:.8rem 1.1rem;font-size:1.06rem}
.note{color:var(--soft);font-size:.9rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,25rem),1fr));gap:1rem}
.card{background:var(--card);border-radius:6px;padding:.8rem 1rem;border-top:4px solid var(--calm)}
.card.k0{border-color:var(--c0)}.card.k1{border-color:var(--c1)}.card.k2{border-color:var(--c2)}
.card.k3{border-color:var(--c3)}.card.k4{border-color:var(--c4)}.card.k5{border-color:var(--c5)}
.card.k6{border-color:var(--c6)}.card.k7{border-color:var(--c7)}.card.k8{border-color:var(--c8)}
.card.k9{border-color:var(--c9)}
table{overflow-wrap:break-word;border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;padding:.28rem .5rem .28rem 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--soft);font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;padding-left:.4rem}
td.c{white-space:nowrap}
td.w{width:26%;min-width:4.5rem;vertical-align:middle}
.traits td.w,.traits th.w{width:20%}
td:first-child,th:first-child{padding-right:.8rem}td.n+td,th.n+th{padding-left:1rem}
.cards{margin-top:.8rem}
.scroll{overflow-x:auto}
.bar{display:block;height:.6rem;background:var(--line);border-radius:3px;overflow:hidden}
.fill{display:block;height:100%;background:var(--calm)}
.fill.c0{background:var(--c0)}.fill.c1{background:var(--c1)}.fill.c2{background:var(--c2)}
.fill.c3{background:var(--c3)}.fill.c4{background:var(--c4)}.fill.c5{background:var(--c5)}
.fill.c6{background:var(--c6)}.fill.c7{background:var(--c7)}.fill.c8{background:var(--c8)}.fill.c9{background:var(--c9)}
.key{display:inline-block;width:.7rem;height:.7rem;border-radius:50%;margin-right:.35rem}
svg{width:100%;height:auto;display:block;max-width:46rem}
svg text{fill:var(--soft);font:13px system-ui,sans-serif}
svg .label{fill:var(--ink)}
.frame{stroke:var(--line);fill:none}.rule{stroke:var(--soft);stroke-dasharray:4 4;fill:none}
.curve{fill:none;stroke:var(--c0);stroke-width:2}
.chain{fill:none;stroke-width:1.3;stroke-opacity:.8}
.chain.s0{stroke:var(--c0)}.chain.s1{stroke:var(--c1)}.chain.s2{stroke:var(--c2)}.chain.s3{stroke:var(--c3)}
.chain.s4{stroke:var(--c4)}.chain.s5{stroke:var(--c5)}.chain.s6{stroke:var(--c6)}.chain.s7{stroke:var(--c7)}
.chain.s8{stroke:var(--c8)}.chain.s9{stroke:var(--c9)}
rect.warn{fill:var(--ink)}rect.calm{fill:var(--calm)}
circle{fill-opacity:.7}
circle.c0{fill:var(--c0)}circle.c1{fill:var(--c1)}circle.c2{fill:var(--c2)}circle.c3{fill:var(--c3)}
circle.c4{fill:var(--c4)}circle.c5{fill:var(--c5)}circle.c6{fill:var(--c6)}circle.c7{fill:var(--c7)}
circle.c8{fill:var(--c8)}circle.c9{fill:var(--c9)}
circle.out{fill:var(--ink)}circle.hollow{fill:none;stroke-width:1.6}circle.hollow.out{stroke:var(--ink)}
circle.hollow.c0{stroke:var(--c0)}circle.hollow.c1{stroke:var(--c1)}circle.hollow.c2{stroke:var(--c2)}
circle.hollow.c3{stroke:var(--c3)}circle.hollow.c4{stroke:var(--c4)}circle.hollow.c5{stroke:var(--c5)}
circle.hollow.c6{stroke:var(--c6)}circle.hollow.c7{stroke:var(--c7)}circle.hollow.c8{stroke:var(--c8)}
circle.hollow.c9{stroke:var(--c9)}
pre{background:var(--card);padding:.7rem .9rem;border-radius:4px;overflow-x:auto;font-size:.85rem;white-space:pre-wrap}
@media(max-width:34rem){body{padding:.8rem;font-size:15px}svg text{font-size:19px}td.w{width:16%;min-width:2.5rem}
th,td{padding-right:.3rem}}
@media print{:root{color-scheme:light;--ink:#000;--soft:#444;--page:#fff;--card:#fff;--line:#bbb;--calm:#999;
--c0:#0072b2;--c1:#c98500;--c2:#009e73;--c3:#d55e00;--c4:#b85c92;--c5:#3d9bd1;--c6:#8c6bb1;--c7:#7f7f7f;--c8:#a08c00;--c9:#a6451c}
body{max-width:none;padding:0;font-size:10.5pt}.card,.answer,svg,tr{break-inside:avoid}h2{break-after:avoid}
.card{border:1px solid var(--line)}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""
