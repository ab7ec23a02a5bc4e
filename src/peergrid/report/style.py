"""The look of the page: one column, light and dark, on paper and on a phone."""

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--ground:#fff;--faint:#5b6570;--rule:#d5dae0;--heat-ink:#0072b2}
@media (prefers-color-scheme:dark){
:root{--ink:#e6e9ec;--ground:#14171a;--faint:#9aa4ae;--rule:#343a41;--heat-ink:#4aa3df}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:62rem;color:var(--ink);background:var(--ground);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;margin:2.2rem 0 .4rem;border-top:1px solid var(--rule);padding-top:1rem}
h3{font-size:1.05rem;margin:1.4rem 0 .3rem}
.faint,caption,.method{color:var(--faint)}
.method,caption{font-size:.85rem}
.follows{border-left:4px solid var(--heat-ink);padding-left:.8rem}
.slow{border-left:4px solid #d55e00;padding-left:.8rem}
.wide{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;margin:.4rem 0}
caption{text-align:left}
th,td{padding:.2rem .55rem;text-align:right;border-bottom:1px solid var(--rule)}
th:first-child{text-align:left;font-weight:500}
thead th{color:var(--faint);font-weight:500}
.heat td{background:color-mix(in srgb,var(--heat-ink) var(--heat,0%),var(--ground));border:1px solid var(--ground)}
figure{margin:.4rem 0}
svg{max-width:100%;height:auto}
.curve{width:100%;max-width:44rem}
.grid{stroke:var(--rule);stroke-width:1}
.tick{font:11px system-ui,sans-serif;fill:var(--faint);text-anchor:middle}
.end{text-anchor:end}.start{text-anchor:start}
@media (max-width:600px){.tick{font-size:18px}.wide>svg{max-width:none!important}}
.legend{font-size:.85rem;display:flex;flex-wrap:wrap;gap:.2rem .9rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem}
a{color:var(--heat-ink)}
@media print{
:root{--ink:#000;--ground:#fff;--faint:#444;--rule:#bbb;--heat-ink:#0072b2}
body{max-width:none;font-size:10pt;padding:0}
nav{display:none}h3,h2{break-after:avoid}table,figure{break-inside:avoid}
.heat td{-webkit-print-color-adjust:exact;print-color-adjust:exact}.wide{overflow:visible}}
"""
