package kafkatest

import (
	"path/filepath"
	"strings"
)

// quickJVM makes a Java program start fast and stay small; its peak speed is lower.
var quickJVM = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}

// logDefaults sends the simple logger's lines to the log file with their time.
var logDefaults = []string{
	"-Dorg.slf4j.simpleLogger.showDateTime=true",
	"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	"-Dorg.slf4j.simpleLogger.showThreadName=false",
}

// javaArgs builds the arguments of the java launcher.
func javaArgs(jars string, jvm []string, class string, args ...string) []string {
	out := append([]string{}, jvm...)
	out = append(out, logDefaults...)
	out = append(out, "-cp", filepath.Join(jars, "*"), class)
	return append(out, args...)
}

// quoteJAAS quotes a value for a JAAS line inside a properties file.
func quoteJAAS(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`).Replace(s) + `"`
}
