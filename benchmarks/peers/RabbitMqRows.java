import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Envelope;
import com.rabbitmq.client.MessageProperties;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The rows of a full life on RabbitMQ: sends to a quorum queue and receives, as `life.py` does them.
 *
 * <p>Arguments: the port on loopback, the row, how many messages. It runs the row once for nothing,
 * while Java compiles, and then prints the figures of a second run as one line of JSON.
 */
public final class RabbitMqRows {
    private static final int BODY_BYTES = 200;
    private static final int BATCH_MESSAGES = 100;
    private static final int PREFETCH_MESSAGES = 1000;
    private static final int SHARED_PREFETCH_MESSAGES = 10;
    private static final int UNCONFIRMED_MESSAGES_MAX = 1000;
    private static final int LATENCY_RATE = 200;
    private static final int WAIT_MS = 60_000;

    private record Received(long tag, byte[] body) {}

    private interface Side {
        void run(Channel channel, String queue, int messages) throws Exception;
    }

    private static double[] delaysMs;

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        String row = arguments[1];
        int messages = Integer.parseInt(arguments[2]);
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(port);
        factory.setAutomaticRecoveryEnabled(false);
        try (Connection sending = factory.newConnection();
                Connection receiving = factory.newConnection()) {
            measure(sending, receiving, row, messages);
            double seconds = measure(sending, receiving, row, messages);
            String figures = String.format(
                    "\"messages_per_second\": %.3f, \"version\": \"%s\"",
                    messages / seconds, sending.getServerProperties().get("version"));
            if (row.equals("latency")) {
                Arrays.sort(delaysMs);
                figures += String.format(
                        ", \"p50_ms\": %.3f, \"p99_ms\": %.3f",
                        delaysMs[messages / 2], delaysMs[messages * 99 / 100]);
            }
            System.out.println("{" + figures + "}");
        }
        System.exit(0);
    }

    /** Lets both sides of a row work on a queue of their own; how many seconds that took. */
    private static double measure(Connection sending, Connection receiving, String row, int messages)
            throws Exception {
        String queue = "bench." + row + "." + Long.toString(System.nanoTime(), 36);
        try (Channel channel = sending.createChannel()) {
            channel.queueDeclare(queue, true, false, false, Map.of("x-queue-type", "quorum"));
        }
        int sessions = row.equals("sixteen") ? 16 : 1;
        int prefetch = sessions > 1 ? SHARED_PREFETCH_MESSAGES : PREFETCH_MESSAGES;
        Side sender;
        Side receiver;
        switch (row) {
            case "transacted" -> {
                sender = RabbitMqRows::sendByTheHundred;
                receiver = (c, q, n) -> receive(c, q, n, prefetch, BATCH_MESSAGES);
            }
            case "pipelined" -> {
                sender = RabbitMqRows::sendPipelined;
                receiver = (c, q, n) -> receive(c, q, n, prefetch, BATCH_MESSAGES);
            }
            case "single", "sixteen" -> {
                sender = RabbitMqRows::sendSingly;
                receiver = (c, q, n) -> receive(c, q, n, prefetch, 1);
            }
            case "latency" -> {
                delaysMs = new double[messages];
                sender = RabbitMqRows::sendAtARate;
                receiver = (c, q, n) -> receive(c, q, n, prefetch, 1);
            }
            default -> throw new IllegalArgumentException("there is no row " + row);
        }
        ExecutorService threads = Executors.newFixedThreadPool(2 * sessions);
        List<Callable<Void>> work = new ArrayList<>();
        List<Channel> channels = new ArrayList<>();
        for (int number = 0; number < sessions; number++) {
            Channel in = receiving.createChannel();
            Channel out = sending.createChannel();
            channels.addAll(List.of(in, out));
            work.add(() -> { receiver.run(in, queue, messages / sessions); return null; });
            work.add(() -> { sender.run(out, queue, messages / sessions); return null; });
        }
        long started = System.nanoTime();
        for (Future<Void> side : threads.invokeAll(work)) side.get();
        double seconds = (System.nanoTime() - started) / 1e9;
        threads.shutdown();
        for (Channel channel : channels) if (channel.isOpen()) channel.close();
        try (Channel channel = sending.createChannel()) {
            channel.queueDelete(queue);
        }
        return seconds;
    }

    private static void publish(Channel channel, String queue, byte[] body) throws Exception {
        channel.basicPublish("", queue, MessageProperties.MINIMAL_PERSISTENT_BASIC, body);
    }

    private static void sendByTheHundred(Channel channel, String queue, int messages)
            throws Exception {
        byte[] body = new byte[BODY_BYTES];
        channel.confirmSelect();
        for (int sent = 1; sent <= messages; sent++) {
            publish(channel, queue, body);
            if (sent % BATCH_MESSAGES == 0 || sent == messages) channel.waitForConfirmsOrDie(WAIT_MS);
        }
    }

    private static void sendSingly(Channel channel, String queue, int messages) throws Exception {
        byte[] body = new byte[BODY_BYTES];
        channel.confirmSelect();
        for (int sent = 0; sent < messages; sent++) {
            publish(channel, queue, body);
            channel.waitForConfirmsOrDie(WAIT_MS);
        }
    }

    private static void sendPipelined(Channel channel, String queue, int messages) throws Exception {
        byte[] body = new byte[BODY_BYTES];
        Semaphore places = new Semaphore(UNCONFIRMED_MESSAGES_MAX);
        ConcurrentSkipListSet<Long> unconfirmed = new ConcurrentSkipListSet<>();
        channel.confirmSelect();
        channel.addConfirmListener(
                (tag, multiple) -> {
                    NavigableSet<Long> confirmed = unconfirmed.headSet(tag, true);
                    if (!multiple && unconfirmed.remove(tag)) places.release();
                    while (multiple && confirmed.pollFirst() != null) places.release();
                },
                (tag, multiple) -> System.err.println("RabbitMQ refused message " + tag));
        for (int sent = 0; sent < messages; sent++) {
            places.acquire();
            unconfirmed.add(channel.getNextPublishSeqNo());
            publish(channel, queue, body);
        }
        if (!places.tryAcquire(UNCONFIRMED_MESSAGES_MAX, WAIT_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("confirms are missing");
        }
    }

    /** Sends at a fixed rate; the body bears the clock. */
    private static void sendAtARate(Channel channel, String queue, int messages) throws Exception {
        channel.confirmSelect();
        long due = System.nanoTime();
        for (int sent = 0; sent < messages; sent++) {
            due += 1_000_000_000L / LATENCY_RATE;
            for (long left; (left = due - System.nanoTime()) > 0; ) LockSupport.parkNanos(left);
            byte[] body = new byte[BODY_BYTES];
            ByteBuffer.wrap(body).putLong(System.nanoTime());
            publish(channel, queue, body);
        }
        channel.waitForConfirmsOrDie(WAIT_MS);
    }

    /** Receives, and acknowledges every so many messages; RabbitMQ does not confirm that. */
    private static void receive(Channel channel, String queue, int messages, int prefetch, int every)
            throws Exception {
        LinkedBlockingQueue<Received> arrived = new LinkedBlockingQueue<>();
        channel.basicQos(prefetch);
        String consumer = channel.basicConsume(queue, false, new DefaultConsumer(channel) {
            @Override
            public void handleDelivery(
                    String tag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
                arrived.add(new Received(envelope.getDeliveryTag(), body));
            }
        });
        for (int got = 1; got <= messages; got++) {
            Received one = arrived.poll(WAIT_MS, TimeUnit.MILLISECONDS);
            if (one == null) throw new IllegalStateException("the queue ran dry");
            if (delaysMs != null) {
                long sentAt = ByteBuffer.wrap(one.body()).getLong();
                delaysMs[got - 1] = (System.nanoTime() - sentAt) / 1e6;
            }
            if (got % every == 0 || got == messages) channel.basicAck(one.tag(), every > 1);
        }
        channel.basicCancel(consumer);
        // The answer to this comes behind all that was acknowledged.
        channel.queueDeclarePassive(queue);
        // What others are still to have goes back.
        channel.close();
    }
}
