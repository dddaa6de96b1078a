// Package grants stands between functions and an emulator of AWS that permits everything: each function may do what template.yaml grants it.
package grants
