import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** Prints what Kafka's own MirrorMaker client library reads on a cluster. */
public class Client {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], source = args[1], group = args[2];
        Map<String, Object> props = new HashMap<>();
        props.put("bootstrap.servers", bootstrap);
        if (args.length > 3) {
            props.put("replication.policy.class", args[3]);
            props.put("source.cluster.alias", source);
        }
        try (MirrorClient client = new MirrorClient(props)) {
            System.out.println("upstream " + new TreeSet<>(client.upstreamClusters()));
            System.out.println("hops " + client.replicationHops(source));
            System.out.println("heartbeats " + new TreeSet<>(client.heartbeatTopics()));
            System.out.println("checkpoints " + new TreeSet<>(client.checkpointTopics()));
            System.out.println("remote " + new TreeSet<>(client.remoteTopics(source)));
        }
        Map<TopicPartition, OffsetAndMetadata> offsets =
            RemoteClusterUtils.translateOffsets(props, source, group, Duration.ofSeconds(20));
        Map<String, Long> sorted = new TreeMap<>();
        offsets.forEach((tp, at) -> sorted.put(tp.toString(), at.offset()));
        sorted.forEach((tp, at) -> System.out.println("offset " + tp + " " + at));
    }
}
