load 'style.gp'
set xlabel 'share of duplicates'
set xtics (@ticks)
set xrange [-0.2:*]
set ylabel 'deliveries a second'
set logscale y
set format y '%.0s%c'
load 'series.gp'
