"""Parts that all other packages use: errors, numbers and sizes as users write them, reading and writing of files."""
