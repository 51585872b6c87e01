package config

// Load reads a file and returns the deployment it describes, with all problems.
// It never returns nil; with an error among the problems the deployment must
// not be run.
func Load(src Source) *Deployment {
	entries, problems := ParseProperties(src.Name, src.Bytes)
	_ = entries
	return &Deployment{Problems: problems}
}
