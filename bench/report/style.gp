# What the plots share. Set before: data (a file of series, each headed by its title), styles (a number for each),
# target (the file to write), kind (svg or png).
if (kind eq 'png') set terminal pngcairo size 1120,560 font 'DejaVu Sans,12' background 'white'; \
else set terminal svg size 1120,560 font 'DejaVu Sans,14' background 'white'
set output target
set border 3 linecolor 'black'
set tics nomirror out
set grid ytics linecolor '#d8d8d8' linetype 1 linewidth 0.6
set key outside right top vertical Left reverse samplen 2.5 spacing 1.25 noautotitle
set errorbars small
set autoscale noextend
set offsets 0, 0, graph 0.06, graph 0.06

# onced is black and thick, peers are coloured, limits grey and dotted.
set linetype 1 linecolor 'black' linewidth 3 dashtype 1 pointtype 7 pointsize 0.9
set linetype 2 linecolor '#d55e00' linewidth 1.6 dashtype 1 pointtype 5 pointsize 0.8
set linetype 3 linecolor '#e69f00' linewidth 1.6 dashtype 1 pointtype 4 pointsize 0.9
set linetype 4 linecolor '#0072b2' linewidth 1.6 dashtype 1 pointtype 9 pointsize 0.9
set linetype 5 linecolor '#56b4e9' linewidth 1.6 dashtype 1 pointtype 8 pointsize 1.0
set linetype 6 linecolor '#009e73' linewidth 1.6 dashtype 1 pointtype 13 pointsize 1.0
set linetype 7 linecolor '#cc79a7' linewidth 1.6 dashtype 1 pointtype 3 pointsize 0.9
set linetype 11 linecolor '#707070' linewidth 1.4 dashtype 3 pointtype 1 pointsize 0.8
set linetype 12 linecolor '#707070' linewidth 1.4 dashtype 3 pointtype 2 pointsize 0.8
set linetype 13 linecolor '#707070' linewidth 1.4 dashtype 3 pointtype 6 pointsize 0.8
set linetype 14 linecolor '#707070' linewidth 1.4 dashtype 3 pointtype 12 pointsize 0.9
set linetype 15 linecolor '#707070' linewidth 1.4 dashtype 3 pointtype 10 pointsize 0.8
# The same colours, dotted and without points.
set linetype 21 linecolor 'black' linewidth 1.4 dashtype 3 pointtype 0
set linetype 22 linecolor '#d55e00' linewidth 1.4 dashtype 3 pointtype 0
set linetype 24 linecolor '#0072b2' linewidth 1.4 dashtype 3 pointtype 0
