"""What every room uses: errors, numbers and sizes as users write them, files read and files written."""
