// The Redis protocol by ioredis, against the service at SLUICE_RESP_PORT, whose password is "secret"; over TLS, if SLUICE_RESP_CA names an authority. Exits with 1 when an answer is wrong.
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { Redis } = require("ioredis");

async function main() {
  const authority = process.env.SLUICE_RESP_CA;
  const tls = authority ? { ca: fs.readFileSync(authority) } : undefined;
  const port = Number(process.env.SLUICE_RESP_PORT);
  const client = new Redis({ host: "localhost", port, tls, password: "secret", connectionName: "article-api" });
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.call("CL.THROTTLE", "node", 15, 30, 60), [0, 16, 15, -1, 2]);
  assert.deepEqual(await client.call("THROTTLE", "node-t", 1, 1, 3600), [1, 1, 0, 3600, 0]);
  await assert.rejects(client.call("CL.THROTTLE", "node", "x", 30, 60), /max_burst must be a whole number/);
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.call("CL.THROTTLE", "node-piped", 9, 1, 86400);
  const replies = await pipeline.exec();
  assert.equal(replies.filter(([error, reply]) => error === null && reply[0] === 0).length, 10);
  const transaction = client.multi();
  for (let i = 0; i < 20; ++i) transaction.call("CL.THROTTLE", "node-kept", 9, 1, 86400);
  const kept = await transaction.exec();
  assert.equal(kept.filter(([error, reply]) => error === null && reply[0] === 0).length, 10);
  await client.quit();
  console.log("all right");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
