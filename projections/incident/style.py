"""How a page looks: in light and dark, on narrow screens and on paper."""

STYLE = """
:root{color-scheme:light dark;--text:#1a1a1a;--quiet:#595959;--back:#fff;--panel:#f5f6f8;
--line:#d0d4da;--link:#0050a0;--bad:#a63600;--good:#00614a}
@media(prefers-color-scheme:dark){:root{--text:#e8e8e8;--quiet:#a8adb5;--back:#14161a;
--panel:#1f2228;--line:#3a3f48;--link:#7cb8f5;--bad:#ff9a5c;--good:#5fd3ae}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1.5rem 1.25rem 4rem;background:var(--back);
color:var(--text);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-top:1px solid var(--line);padding-top:1.25rem}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
p{margin:.25rem 0 .75rem;max-width:46rem}
a{color:var(--link)}
.quiet,.more{color:var(--quiet)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:1rem 0 0;padding:0}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:.75rem;
margin:1rem 0}
.facts div{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;
padding:.6rem .8rem}
.facts dt{color:var(--quiet);font-size:.875rem}
.facts dd{margin:0;font-size:1.25rem;font-weight:600;font-variant-numeric:tabular-nums}
.facts .bad dd{color:var(--bad)}
.scroll{overflow-x:auto;margin:.75rem 0}
.scroll:focus-visible{outline:2px solid var(--link);outline-offset:2px}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;
overflow-wrap:normal}
caption{text-align:left;font-weight:600;padding-bottom:.4rem;font-size:1rem}
caption span{position:sticky;left:0;display:inline-block;max-width:calc(100vw - 2.5rem)}
th,td{padding:.3rem .9rem .3rem 0;text-align:left;vertical-align:top;white-space:nowrap}
th{border-bottom:1px solid var(--line);font-weight:600}
td{border-bottom:1px solid var(--panel)}
th.number,td.number{text-align:right}
td .long{display:block;white-space:normal;min-width:18rem;max-width:40rem}
figure{margin:.75rem 0}
figcaption{font-weight:600}
svg{display:block;width:100%;min-width:44rem;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--text)}
svg .queue{font-weight:600}
svg .axis{stroke:var(--quiet);stroke-width:1}
svg .grid{stroke:var(--line);stroke-width:1;stroke-dasharray:2 3}
svg polygon,svg .part{stroke:var(--back);stroke-width:.75}
article{background:var(--panel);border:1px solid var(--line);border-radius:.5rem;
padding:.25rem 1rem 1rem;margin:1rem 0}
article h3{margin-top:.75rem}
.story{list-style:none;margin:.5rem 0 0;padding:0;font-size:.875rem}
.story li{display:grid;grid-template-columns:14.5rem 1fr;gap:0 1rem;padding:.15rem 0}
.story .at{color:var(--quiet);font-variant-numeric:tabular-nums;white-space:nowrap}
@media(max-width:44rem){.story li{grid-template-columns:1fr;padding:.35rem 0}
body{padding:1rem .85rem 3rem}}
@media print{.scroll{overflow:visible}article{break-inside:avoid}}
"""
