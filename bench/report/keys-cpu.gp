load 'style.gp'
load 'keys.gp'
set ylabel 'CPU, µs a delivery'
set logscale y
load 'series.gp'
