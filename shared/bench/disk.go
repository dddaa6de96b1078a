package bench

import (
	"os"
	"sync"
	"time"
)

// diskFloor returns how many records of size bytes a second the disk below dir takes from that many writers, if nothing else
// had to be done: all that wait are written to the end of one file, and acknowledged by one sync. 0 if dir is "".
func diskFloor(dir string, writers, size int, duration time.Duration) (float64, error) {
	if dir == "" {
		return 0, nil
	}
	file, err := os.CreateTemp(dir, "floor-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	return commitTogether(file, writers, size, duration)
}

// commitTogether lets writers hand records to one committer for a while and returns the records per second.
func commitTogether(file *os.File, writers, size int, duration time.Duration) (float64, error) {
	waiting, stop := make(chan chan<- struct{}, writers), make(chan struct{})
	var group sync.WaitGroup
	defer group.Wait()
	defer close(stop)
	for range writers {
		group.Go(func() { handOver(waiting, stop) })
	}
	record := make([]byte, size*writers)
	batch := make([]chan<- struct{}, 0, writers)
	total := 0
	began := time.Now()
	for time.Since(began) < duration {
		batch = append(batch[:0], <-waiting)
		for len(waiting) > 0 {
			batch = append(batch, <-waiting)
		}
		if _, err := file.Write(record[:size*len(batch)]); err != nil {
			return 0, err
		}
		if err := syncData(file); err != nil {
			return 0, err
		}
		for _, done := range batch {
			done <- struct{}{}
		}
		total += len(batch)
	}
	return float64(total) / time.Since(began).Seconds(), nil
}

// handOver is one writer: it hands over a record and waits until it is on the disk, again and again.
func handOver(waiting chan<- chan<- struct{}, stop <-chan struct{}) {
	done := make(chan struct{}, 1)
	for {
		select {
		case waiting <- done:
		case <-stop:
			return
		}
		select {
		case <-done:
		case <-stop:
			return
		}
	}
}

// twoSyncs measures, that many times at an even pace, how long the disk below dir takes for two records, one after the other,
// each with a sync of its own. The file has its full length before.
func twoSyncs(dir string, size, perSecond, times int) (laps []time.Duration, err error) {
	file, err := os.CreateTemp(dir, "floor-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.Write(make([]byte, 2*size*times)); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	ticker := time.NewTicker(time.Second / time.Duration(max(perSecond, 1)))
	defer ticker.Stop()
	record := make([]byte, size)
	for i := range times {
		<-ticker.C
		began := time.Now()
		for k := range 2 {
			if _, err := file.WriteAt(record, int64((2*i+k)*size)); err != nil {
				return nil, err
			}
			if err := syncData(file); err != nil {
				return nil, err
			}
		}
		laps = append(laps, time.Since(began))
	}
	return laps, nil
}
