// A session with the Node client `redis`, once in RESP2 and once in RESP3.
import assert from 'node:assert/strict';
import { createClient, WatchError } from 'redis';

const port = Number(process.env.PORT);

async function session(protocol) {
  const client = createClient({ socket: { host: '127.0.0.1', port }, RESP: protocol });
  client.on('error', (error) => { throw error; });
  await client.connect();
  await client.flushAll();
  assert.equal(await client.ping(), 'PONG');
  assert.equal(await client.set('greeting', 'hello'), 'OK');
  assert.equal(await client.get('greeting'), 'hello');
  assert.equal(await client.get('missing'), null);
  assert.equal(await client.set('greeting', 'again', { NX: true }), null);
  assert.equal(await client.set('short', 'v', { EX: 100 }), 'OK');
  const ttl = await client.ttl('short');
  assert.ok(ttl > 97 && ttl <= 100);
  assert.equal(await client.incr('n'), 1);
  assert.equal(await client.incrBy('n', 41), 42);
  assert.equal(await client.mSet({ a: '1', b: '2' }), 'OK');
  assert.deepEqual(await client.mGet(['a', 'b', 'c']), ['1', '2', null]);
  assert.deepEqual(await client.multi().set('x', '1').incr('x').get('x').exec(), ['OK', 2, '2']);

  // many commands at once are pipelined by the client
  await Promise.all(Array.from({ length: 2000 }, (_, i) => client.set(`p:${i}`, String(i))));
  const values = await Promise.all(Array.from({ length: 2000 }, (_, i) => client.get(`p:${i}`)));
  values.forEach((value, i) => assert.equal(value, String(i)));
  const seen = new Set();
  for await (const keys of client.scanIterator({ MATCH: 'p:*', COUNT: 50 })) {
    for (const key of [keys].flat()) seen.add(key);
  }
  assert.equal(seen.size, 2000);

  const other = client.duplicate();
  other.on('error', (error) => { throw error; });
  await other.connect();
  await client.watch('x');
  await other.set('x', 'changed');
  await assert.rejects(client.multi().set('x', 'lost').exec(), WatchError);
  await assert.rejects(client.incr('greeting'), /not an integer/);
  assert.match(await client.info('server'), /redis_version:\d/);
  assert.equal(await client.clientSetName('node'), 'OK');
  assert.equal((await client.clientInfo()).name, 'node');
  assert.equal(await client.dbSize(), 2000 + 6);
  await other.close();
  await client.close();
}

await session(2);
await session(3);
console.log('node redis: fine');
