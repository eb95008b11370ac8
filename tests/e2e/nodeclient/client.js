// The Redis protocol by ioredis, against the service at SLUICE_RESP_PORT, whose password is "secret". Exits with 1 when an answer is wrong.
const assert = require("node:assert/strict");
const { Redis } = require("ioredis");

async function main() {
  const client = new Redis({ port: Number(process.env.SLUICE_RESP_PORT), password: "secret", connectionName: "article-api" });
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.call("CL.THROTTLE", "node", 15, 30, 60), [0, 16, 15, -1, 2]);
  assert.deepEqual(await client.call("THROTTLE", "node-t", 1, 1, 3600), [1, 1, 0, 3600, 0]);
  await assert.rejects(client.call("CL.THROTTLE", "node", "x", 30, 60), /max_burst must be a whole number/);
  const pipeline = client.pipeline();
  for (let i = 0; i < 1000; ++i) pipeline.call("CL.THROTTLE", "node-piped", 9, 1, 86400);
  const replies = await pipeline.exec();
  assert.equal(replies.filter(([error, reply]) => error === null && reply[0] === 0).length, 10);
  await client.quit();
  console.log("all right");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
