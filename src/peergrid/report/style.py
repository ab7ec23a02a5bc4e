"""The style of the page: one column, light and dark, for screens, phones and print."""

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--ground:#fff;--faint:#5b6570;--rule:#d5dae0;--heat-ink:#0072b2;
--link:#005a8f;--soft:#f4f6f8;--line-0:#0072b2;--line-1:#d55e00;--line-2:#009e73;--line-3:#cc79a7;
--line-4:#e69f00;--line-5:#56b4e9;--line-6:#7f7f7f;--line-7:#8b5cf6}
@media (prefers-color-scheme:dark){
:root{--ink:#e6e9ec;--ground:#14171a;--faint:#a3adb7;--rule:#343a41;--heat-ink:#2f7fb8;--link:#6cb8ee;--soft:#1d2126;
--line-0:#58a9e0;--line-1:#f08a4b;--line-2:#3cc79b}}
*{box-sizing:border-box}
html{font-size:16px}
body{margin:0 auto;padding:1rem;max-width:76rem;color:var(--ink);background:var(--ground);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.35rem;margin:2.4rem 0 .4rem;border-top:1px solid var(--rule);padding-top:1rem}
h3{font-size:1.08rem;margin:1.8rem 0 .2rem}
h4{font-size:.9rem;font-weight:600;margin:.5rem 0 .1rem}
p,ul{max-width:46rem}
.faint,caption,.method{color:var(--faint)}
.method,caption{font-size:.85rem}
.method{margin:.4rem 0}
.follows{border-left:4px solid var(--heat-ink);padding-left:.8rem;font-size:1.05rem}
.slow{border-left:4px solid #d55e00;padding-left:.8rem}
.glance{display:grid;grid-template-columns:repeat(auto-fill,minmax(10rem,1fr));gap:.6rem;margin:1.2rem 0 0}
.glance div{background:var(--soft);border-radius:6px;padding:.5rem .7rem}
dt{font-size:.85rem;color:var(--faint)}
dd{margin:0;font-size:1.15rem;font-weight:600;line-height:1.3;white-space:nowrap}
dd small{display:block;font-size:.78rem;font-weight:400;color:var(--faint);white-space:normal}
.parts{display:flex;flex-wrap:wrap;gap:0 2.5rem;align-items:flex-start}
.part{flex:1 1 33rem;min-width:0;max-width:100%}
.part:has(.card~.card .curve),.part:has(.card:nth-child(5)){flex-basis:100%}
.cards{display:flex;flex-wrap:wrap;gap:.2rem 2.2rem;align-items:flex-start}
.card{min-width:0;max-width:100%}
.card:has(.curve){flex:0 1 34rem}
.wide{overflow-x:auto;max-width:100%;background:linear-gradient(to right,var(--ground) 1rem,transparent),
linear-gradient(to left,var(--ground) 1rem,transparent) right,
linear-gradient(to right,var(--rule),transparent .7rem),linear-gradient(to left,var(--rule),transparent .7rem) right;
background-attachment:local,local,scroll,scroll;background-repeat:no-repeat;background-size:2rem 100%}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums;margin:.2rem 0 .6rem}
caption{text-align:left;white-space:nowrap}
th,td{padding:.18rem .55rem;text-align:right;border-bottom:1px solid var(--rule)}
td{white-space:nowrap}
th:first-child,td:first-child{text-align:left}
tbody th{min-width:5.5rem}.heat tbody th,.plain tbody th{min-width:0}
th{font-weight:500}
thead th{color:var(--faint)}
.heat td{background:color-mix(in srgb,var(--heat-ink) var(--heat,0%),var(--ground));border:1px solid var(--ground)}
figure{margin:.2rem 0}
svg{max-width:100%;height:auto}
.curve{width:100%}
.grid{stroke:var(--rule);stroke-width:1}
.tick{font:14px system-ui,sans-serif;fill:var(--faint);text-anchor:middle}
.end{text-anchor:end}.start{text-anchor:start}
@media (max-width:600px){.tick{font-size:19px}.wide>svg{max-width:none!important}}
.legend{font-size:.85rem;display:flex;flex-wrap:wrap;gap:.1rem .9rem}
summary{font-size:.85rem;color:var(--faint);cursor:pointer}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem}
a{color:var(--link)}
@media print{
html{font-size:9.5pt}.tick{font-size:20px}.wide{background:none}
:root{color-scheme:light;--ink:#000;--ground:#fff;--faint:#444;--rule:#bbb;--heat-ink:#0072b2;--soft:#f4f6f8;
--line-0:#0072b2;--line-1:#d55e00;--line-2:#009e73}
body{max-width:none;padding:0}
nav,details{display:none}h4,h3,h2{break-after:avoid}h3,p,.card,table,figure,.glance div{break-inside:avoid}
.card:has(.curve){flex:0 1 46%}.part{flex-basis:46%}
.heat td,.glance div{-webkit-print-color-adjust:exact;print-color-adjust:exact}.wide{overflow:visible}}
"""
