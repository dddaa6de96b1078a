// Package layouts opens data of each layout that was released, and demands that everything in it is there and goes on.
//
// testdata has a folder for each layout: data.tar.gz is a data directory of the embedded store, table.json.gz the items of a table that
// processes share, and want-*.json what each holds. `go test ./tests/layouts -update` writes those of this program's layout anew, which
// is right only as long as that layout was in no release.
package layouts
