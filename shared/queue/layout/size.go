package layout

// MaxTogether is how many bytes of one request go in one write: tasks with their payloads, or lines of a log. More tasks go in
// several writes; more lines are [ErrTooLarge].
const MaxTogether = 5 << 19 // 2.5 MiB: a store's write holds 3
