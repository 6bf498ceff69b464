load 'style.gp'
set xlabel 'load, % of what the closed loop reached'
set xtics (@ticks)
set xrange [0:100]
set ylabel 'acknowledgement of new jobs, ms'
set logscale y
scale = 1000
load 'series.gp'
