"""hole on the ledger while a bridge and a relay run; registry etc"""
from __future__ import annotations
import time, pytest, threading, contextlib, subprocess
from concurrent.futures import ThreadPoolExecutor
from confluent_kafka import Producer
from relay.test_relay import relay_of, bridge_out, send
from support.brokers.worker_process import new_place
pytestmark=[pytest.mark.kafka]

@contextlib.contextmanager
def going(b):
    b.until_end=False
    with ThreadPoolExecutor() as pool:
        r = pool.submit(b.run)
        try: yield r
        finally: b.stopping.set()

def test_hole(ways):
    topic, queue, rq = ways.topic(), ways.name(), ways.name("rq")
    b = ways.bridge(topic, f"queue:{queue}")
    b.timeout_seconds=5
    relay = relay_of(ways, rq)
    ways.produce(topic, *({"value": str(n)} for n in range(100)))
    with going(b) as run, going(relay) as run2:
        while b.put < 100: time.sleep(0.1)
        send(ways, rq, *(str(n) for n in range(50)))
        while relay.forwarded < 50: time.sleep(0.1)
        p = Producer({"bootstrap.servers": ways.bootstrap, "transactional.id": ways.name()}); p.init_transactions(30)
        print('ops', ways.ends(ways.place.topics.operations)); p.begin_transaction(); p.produce(ways.place.topics.operations, b"garbage", b"QM1", 0); p.flush(30); p.abort_transaction(30)
        ways.produce(topic, *({"value": str(n)} for n in range(100, 200)))
        hole = ways.ends(ways.place.topics.operations)[0]-1
        for i in range(60):
            time.sleep(1)
            if ways.told: print("told after", i); break
        print("TOLD", ways.told, b.put, run.done(), run2.done())
        print([w.log[-1500:] for w in ways.place.workers])
        r = ways.runner("log", "skip", str(hole), "--yes", "--reason", "x", "--actor","y"); print(r.communicate()[0])
        t=time.time()
        while b.put < 200 and time.time()-t<90 and not run.done(): time.sleep(0.2)
        print("TOLD", ways.told, b.put, run.done(), run2.done())
    got=[int(m.body) for m in ways.messages(queue)]
    assert got == list(range(200))
    print(sorted(int(m.body) for m in ways.messages(rq, "QM2"))[-3:])

def test_measure_out(ways):
    n=20000
    for body in (b"x"*1000, {f"k{i}": i for i in range(20)}):
        for check in (True, False):
            queue, topic = ways.name("out"), ways.topic()
            with ways.connect() as c, c.session() as s: s.producer(f"queue:{queue}").send_many([body]*n)
            from ledgermq.relay import topic_goal
            b = bridge_out(ways, queue, topic)
            orig = topic_goal.TopicGoal.check
            if not check: topic_goal.TopicGoal.check = staticmethod(lambda m: None)
            t, cpu = time.time(), time.process_time(); b.run(); print(type(body), "check", check, f"{time.time()-t:.1f}s cpu {time.process_time()-cpu:.2f}s", b.forwarded, flush=True)
            topic_goal.TopicGoal.check = staticmethod(orig)

def test_damaged_transfer(ways): pass
