// The first argument "server": serves pages, and its own file; otherwise its clients: eight goroutines with a connection each.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

func main() {
	if os.Args[1] == "server" {
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello "+r.URL.Path)
		})
		mux.HandleFunc("/big", func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, os.Args[0])
		})
		mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) {
			go func() { time.Sleep(time.Second); os.Exit(0) }()
		})
		fmt.Println(http.ListenAndServe(":8080", mux))
		return
	}
	time.Sleep(100 * time.Millisecond)
	a, err := net.LookupHost("node0")
	fmt.Println(a, err)
	host := "10.0.0.1:8080"
	var wg sync.WaitGroup
	var mu sync.Mutex
	var total time.Duration
	right := 0
	for k := 0; k < 8; k++ {
		wg.Add(1)
		go func(k int) {
			defer wg.Done()
			c := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
			for i := 0; i < 20; i++ {
				t := time.Now()
				r, err := c.Get(fmt.Sprintf("http://%s/%d/%d", host, k, i))
				if err != nil {
					fmt.Println(err)
					return
				}
				b, _ := io.ReadAll(r.Body)
				r.Body.Close()
				mu.Lock()
				if string(b) == fmt.Sprintf("hello /%d/%d", k, i) {
					right++
				}
				total += time.Since(t)
				mu.Unlock()
			}
		}(k)
	}
	wg.Wait()
	fmt.Println(right, "right, mean", total/time.Duration(right))
	r, err := http.Get("http://" + host + "/big")
	if err == nil {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Println("big", n, err)
	} else {
		fmt.Println(err)
	}
	http.Get("http://" + host + "/end")
}
