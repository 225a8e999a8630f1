// A session with the Node client `ioredis`: its ready check, auto-pipelining, transactions, scan stream, reconnection.
import assert from 'node:assert/strict';
import Redis from 'ioredis';

const port = Number(process.env.PORT);
const client = new Redis(port, '127.0.0.1', { enableAutoPipelining: true, db: 1 });
client.on('error', (error) => { throw error; });

assert.equal(await client.ping(), 'PONG');
assert.equal(await client.set('greeting', 'hello'), 'OK');
assert.equal(await client.get('greeting'), 'hello');
assert.equal(await client.get('missing'), null);
assert.equal(await client.set('greeting', 'again', 'NX'), null);
assert.equal(await client.set('short', 'v', 'PX', 100000), 'OK');
assert.ok(await client.pttl('short') > 97000);
assert.equal(await client.incrby('n', 42), 42);
assert.deepEqual(await client.mget('n', 'missing'), ['42', null]);
assert.deepEqual(await client.getBuffer('greeting'), Buffer.from('hello'));

await Promise.all(Array.from({ length: 2000 }, (_, i) => client.set(`p:${i}`, i)));
const pipeline = client.pipeline();
for (let i = 0; i < 100; ++i) pipeline.get(`p:${i}`);
(await pipeline.exec()).forEach(([error, value], i) => {
  assert.equal(error, null);
  assert.equal(value, String(i));
});
assert.deepEqual(await client.multi().set('x', 1).incr('x').incr('greeting').exec().then((r) => r.slice(0, 2)),
                 [[null, 'OK'], [null, 2]]);

const seen = new Set();
for await (const keys of client.scanStream({ match: 'p:*', count: 100 })) keys.forEach((key) => seen.add(key));
assert.equal(seen.size, 2000);

const other = new Redis(port, '127.0.0.1', { db: 1 });
await client.watch('x');
await other.set('x', 'changed');
assert.equal(await client.multi().set('x', 'lost').exec(), null);
await assert.rejects(client.incr('greeting'), /not an integer/);

// killed by another client, it reconnects by itself, to its database
const id = await client.client('ID');
assert.equal(await other.client('KILL', 'ID', id), 1);
assert.equal(await client.get('x'), 'changed');
assert.notEqual(await client.client('ID'), id);

assert.match(await client.info('server'), /redis_version:\d/);
await other.quit();
await client.flushdb();
await client.quit();
console.log('ioredis: fine');
