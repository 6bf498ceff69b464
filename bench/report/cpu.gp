load 'style.gp'
set xlabel 'share of duplicates'
set xtics (@ticks)
set xrange [-0.2:*]
set ylabel 'CPU, µs a delivery'
set logscale y
load 'series.gp'
