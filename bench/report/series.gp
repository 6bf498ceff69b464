# All series: a line through the medians, and bars from the least to the most, but of limits. `scale`
# divides the figures.
if (!exists('scale')) scale = 1
style_of(i) = int(word(styles, i))
plot for [i = 1:words(styles)] data index i - 1 using 1:($2 / scale):(style_of(i) < 10 ? $3 / scale : NaN):(style_of(i) < 10 ? $4 / scale : NaN) \
       with yerrorbars linecolor style_of(i) linewidth 1 pointtype -1, \
     for [i = 1:words(styles)] data index i - 1 using 1:($2 / scale) with linespoints linetype style_of(i) title columnheader(1)
