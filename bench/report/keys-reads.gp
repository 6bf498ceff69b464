load 'style.gp'
load 'keys.gp'
set ylabel 'block reads a delivery'
set yrange [0:*]
load 'series.gp'
