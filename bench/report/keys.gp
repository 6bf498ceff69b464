set xlabel 'keys in the store'
set logscale x
set xtics (@ticks)
set offsets graph 0.05, graph 0.05, graph 0.06, graph 0.06
