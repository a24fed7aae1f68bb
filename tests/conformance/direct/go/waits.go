// A library in Go, whose runtime makes its system calls itself.
package main

import "C"

import (
	"sync"
	"time"
)

// Count goroutines sleep three times each, the first for ms, the second for twice as long. Returns the sum of
// what each found to have passed, in milliseconds.
//
//export Sleep
func Sleep(count C.int, ms C.int) C.double {
	var all sync.WaitGroup
	var mutex sync.Mutex
	began := time.Now()
	total := time.Duration(0)
	for i := 1; i <= int(count); i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			for j := 0; j < 3; j++ {
				time.Sleep(time.Duration(int(ms)*i) * time.Millisecond)
			}
			mutex.Lock()
			total += time.Since(began)
			mutex.Unlock()
		}(i)
	}
	all.Wait()
	return C.double(total.Seconds() * 1e3)
}

// Sends numbers to another goroutine and back, and waits until a limit. Returns their sum.
//
//export Exchange
func Exchange(count C.int) C.int {
	there, back := make(chan int), make(chan int)
	go func() {
		for value := range there {
			back <- value + 1
		}
	}()
	sum := 0
	for i := 0; i < int(count); i++ {
		there <- i
		sum += <-back
	}
	close(there)
	select {
	case <-back:
	case <-time.After(250 * time.Millisecond):
	}
	return C.int(sum)
}

// The day, from 1970.
//
//export Day
func Day() C.long { return C.long(time.Now().Unix() / 86400) }

func main() {}
