package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archive writes the files below build, and the texts of root, as a compressed tar whose entries lie in the folder top.
func archive(to, top, build, root string, at time.Time) (err error) {
	files, err := below(build)
	if err != nil {
		return err
	}
	for _, text := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		files[text] = filepath.Join(root, text)
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	compressed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(compressed)
	for _, name := range names {
		if err := add(w, top+"/"+name, files[name], at); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// below returns the files in a folder, by their path within it.
func below(folder string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files[filepath.ToSlash(name)] = path
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s is empty", folder)
	}
	return files, err
}

func add(w *tar.Writer, name, path string, at time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info, err := os.Stat(path); err == nil && info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	header := &tar.Header{Name: name, Mode: mode, Size: int64(len(text)), ModTime: at, Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// checksums writes SHA256SUMS, as sha256sum --check reads it.
func checksums(out string, names []string) error {
	var lines strings.Builder
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(text), name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
