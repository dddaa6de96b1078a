package fileorder_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/shared/definition"
	"github.com/millrace/millrace/shared/fileorder"
)

// Objects that are created start an order each, once for each time. Where nothing is declared to be done with them, the orders finish with
// the last step.
func TestObjectsStartOrders(t *testing.T) {
	onBoth(t, func(f *definition.FileOrder) { f.Directory, f.Done = "s3://b/in", definition.FileDone{} }, func(t *testing.T, b *bench) {
		bucket := fileorder.Bucket{Orders: b.orders, Definitions: b.sets}
		receive := func(body string, fails bool) {
			t.Helper()
			if err := bucket.Receive(t.Context(), []byte(body)); (err != nil) != fails {
				t.Errorf("Receive(%s) = %v", body, err)
			}
		}
		record := func(name, key, sequencer string) string {
			return fmt.Sprintf(`{"Records":[{"eventName":%q,"s3":{"bucket":{"name":"b"},"object":{"key":%q,"sequencer":%q}}}]}`, name, key, sequencer)
		}
		for _, ignored := range []string{
			`{"Event":"s3:TestEvent"}`, `{"detail-type":"Object Deleted","detail":{"bucket":{"name":"b"},"object":{"key":"in/a.csv"}}}`,
			record("ObjectRemoved:Delete", "in/a.csv", "1"), record("ObjectCreated:Put", "in/a.txt", "1"),
			record("ObjectCreated:Put", "a.csv", "1"), record("ObjectCreated:Put", "in/deep/a.csv", "1"), record("ObjectCreated:Put", "in/", "1"),
		} {
			receive(ignored, false)
		}
		b.want()
		receive(`[`, true)
		receive(record("ObjectCreated:Put", "in/a+%C3%A4.csv", "1"), false)
		receive(record("ObjectCreated:Put", "in/a+%C3%A4.csv", "2"), false) // replaced while its order is under way
		b.want("OrderAdded:a ä.csv")
		o, err := b.orders.Get(t.Context(), "/c", "s3://b/in/a ä.csv")
		if err != nil || string(o.Variables) != `{"scheduler_file_path":"s3://b/in/a ä.csv"}` {
			t.Errorf("the order is %+v, %v", o, err)
		}
		b.run()
		b.want("OrderFinished:a ä.csv")
		receive(record("ObjectCreated:Put", "in/a+%C3%A4.csv", "1"), false) // once more
		b.want()
		receive(`{"detail-type":"Object Created","detail":{"bucket":{"name":"b"},"object":{"key":"in/a ä.csv","sequencer":"3"}}}`, false)
		b.want("OrderAdded:a ä.csv")
		if _, err := b.orders.Get(t.Context(), "/c", "s3://b/in/a.csv"); err == nil {
			t.Error("an order without an event")
		}
	})
}
