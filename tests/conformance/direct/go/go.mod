module waits

go 1.20
