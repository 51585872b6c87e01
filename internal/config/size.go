package config

// ParseSize reads a number of bytes as files write it: 1048576, 64MiB, 10MB.
func ParseSize(text string) (int64, error) { return parseSize(text) }
