package kafkatest

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Tool runs one of Kafka's command-line tools and returns what it printed to its
// standard output. A tool is named by its class without the package, which moved
// between releases: ConsoleProducer, ConsoleConsumer, TopicCommand,
// ConsumerGroupCommand, ConfigCommand, AclCommand, DeleteRecordsCommand,
// DumpLogSegments, ProducerPerformance, TransactionsCommand, GetOffsetShell; a
// name with dots is taken as it is.
func Tool(ctx context.Context, version, tool string, args ...string) (string, error) {
	return ToolWithInput(ctx, version, "", tool, args...)
}

// ToolWithInput is [Tool] with something to read on the standard input.
func ToolWithInput(ctx context.Context, version, input, tool string, args ...string) (string, error) {
	jars, err := Jars(ctx, version)
	if err != nil {
		return "", err
	}
	class, err := toolClass(jars, version, tool)
	if err != nil {
		return "", err
	}
	said, err := runJava(ctx, jars, "warn", input, class, args...)
	if err != nil {
		return said, fmt.Errorf("%s of kafka %s: %w", tool, version, err)
	}
	return said, nil
}

// runJava runs a class, or a source file, and returns what it printed to its standard output.
func runJava(ctx context.Context, jars, logLevel, input, class string, args ...string) (string, error) {
	jvm := append([]string{"-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=" + logLevel}, quickJVM...)
	cmd := exec.CommandContext(ctx, "java", javaArgs(jars, jvm, class, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%w: %s", err, lastLines(stderr.String()+stdout.String(), 15))
	}
	return stdout.String(), nil
}

// toolClasses remembers where a release keeps its tools.
var toolClasses sync.Map

// toolClass finds a tool's class in the jars that hold tools, newer homes first.
func toolClass(jars, version, tool string) (string, error) {
	if strings.Contains(tool, ".") {
		return tool, nil
	}
	key := version + "/" + tool
	if class, ok := toolClasses.Load(key); ok {
		return class.(string), nil
	}
	for _, jar := range []string{"kafka-tools-" + version + ".jar", "kafka_2.13-" + version + ".jar"} {
		class, err := classIn(filepath.Join(jars, jar), tool)
		if err != nil {
			return "", err
		}
		if class != "" {
			toolClasses.Store(key, class)
			return class, nil
		}
	}
	return "", fmt.Errorf("kafka %s has no tool %s", version, tool)
}

// classIn returns the full name of a class in a jar, or an empty name.
func classIn(jar, simple string) (string, error) {
	z, err := zip.OpenReader(jar)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", jar, err)
	}
	defer z.Close()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/"+simple+".class") {
			return strings.ReplaceAll(strings.TrimSuffix(f.Name, ".class"), "/", "."), nil
		}
	}
	return "", nil
}

// MirrorMakerOptions say how to run Java MirrorMaker 2.
type MirrorMakerOptions struct {
	Version string   // its release; it need not be that of a cluster
	File    string   // the properties file
	Args    []string // after the file: "--clusters", "B"
	Dir     string   // for its log
	Heap    string   // "512m" by default
	JVM     []string // replaces the flags that trade peak speed for a quick start
	Name    string   // of the log, "mirrormaker" by default
}

// MirrorMaker starts Java MirrorMaker 2 in its dedicated mode and returns at
// once. The caller stops it.
func MirrorMaker(ctx context.Context, o MirrorMakerOptions) (*Process, error) {
	return connectRuntime(ctx, "org.apache.kafka.connect.mirror.MirrorMaker", o)
}

// ConnectWorker starts a worker of a Connect cluster, in which MirrorMaker 2 runs as
// connectors, and returns at once. The caller stops it.
func ConnectWorker(ctx context.Context, o MirrorMakerOptions) (*Process, error) {
	return connectRuntime(ctx, "org.apache.kafka.connect.cli.ConnectDistributed", o)
}

func connectRuntime(ctx context.Context, class string, o MirrorMakerOptions) (*Process, error) {
	jars, err := Jars(ctx, o.Version)
	if err != nil {
		return nil, err
	}
	if o.Heap == "" {
		o.Heap = "512m"
	}
	if o.JVM == nil {
		o.JVM = quickJVM
	}
	if o.Name == "" {
		o.Name = "mirrormaker"
	}
	jvm := append([]string{"-Xmx" + o.Heap}, o.JVM...)
	return StartProcess(ProcessSpec{
		Name: o.Name,
		Dir:  o.Dir,
		Path: "java",
		Args: javaArgs(jars, jvm, class, append([]string{o.File}, o.Args...)...),
	})
}

// RunJava compiles and runs a single Java source file against a release's jars and
// returns what it printed to its standard output. It needs a JDK.
func RunJava(ctx context.Context, version, source string, args ...string) (string, error) {
	jars, err := Jars(ctx, version)
	if err != nil {
		return "", err
	}
	said, err := runJava(ctx, jars, "error", "", source, args...)
	if err != nil {
		return said, fmt.Errorf("java %s with kafka %s: %w", source, version, err)
	}
	return said, nil
}

// RequireJDK skips tb where Java sources cannot be compiled, or fails it where
// they must be: see [RequireEnv].
func RequireJDK(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath("javac"); err != nil {
		Missing(tb, "a JDK is needed", err)
	}
}
