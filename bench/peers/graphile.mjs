// The half of graphile.py that is Node: node graphile.mjs MODULES DSN OPERATION [...]
import fs from "node:fs";
import { createRequire } from "node:module";

process.env.NO_LOG_SUCCESS = "1"; // as its own performance test
const [modules, dsn, operation, ...words] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { Pool } = require("pg");
const { makeWorkerUtils, run } = require("graphile-worker");
const CONCURRENT_JOBS = 24;
const WARM_UP = 20;
const ONE = "select graphile_worker.add_job('fetch', json_build_object('t', $1::bigint))";
const many = (jobs, runAt) =>
  `select count(*) from graphile_worker.add_jobs(array(
     select row('fetch', '{"t":0}'::json, null, ${runAt}, null, null, null, null)::graphile_worker.job_spec
       from generate_series(1, ${Number(jobs)})))`;

// Both clocks are the monotonic one of the machine.
const microseconds = () => process.hrtime.bigint() / 1000n;

async function connected(use) {
  const pool = new Pool({ connectionString: dsn, max: 1 });
  const client = await pool.connect();
  try {
    return await use(client);
  } finally {
    client.release();
    await pool.end();
  }
}

async function timed(times, once) {
  const began = microseconds();
  for (let number = 0; number < times; number++) await once();
  return Number(microseconds() - began) / 1e6;
}

async function setup() {
  const utils = await makeWorkerUtils({ connectionString: dsn });
  await utils.migrate();
  await utils.release();
  // As in any system that has run for a while, its kind of job is known.
  const known = "insert into graphile_worker._private_tasks (identifier) values ('fetch')";
  await connected((client) => client.query(known));
  return null;
}

const add = (client, asked) => client.query({ name: "add", text: ONE, values: [String(asked)] });

function single(jobs) {
  return connected(async (client) => {
    await timed(WARM_UP, () => add(client, 0));
    return timed(Number(jobs), () => add(client, 0));
  });
}

function paced(jobs, gap) {
  return connected(async (client) => {
    const start = performance.now();
    for (let number = 0; number < Number(jobs); number++) {
      const wait = start + number * Number(gap) * 1000 - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      await add(client, microseconds());
    }
    return null;
  });
}

function bulk(jobs) {
  return connected((client) => timed(1, () => client.query(many(jobs, "null"))));
}

function delayed(jobs) {
  return connected(async (client) => {
    await client.query(many(jobs, "now() + interval '1 day'"));
    return null;
  });
}

// The counter's file, see counter.py: runs of each worker; how many latencies, the latencies.
function counting(path, slot, noted, kept) {
  const file = fs.openSync(path, "r+");
  const cell = Buffer.alloc(8);
  const put = (place, value) => {
    cell.writeBigUInt64LE(BigInt(value));
    fs.writeSync(file, cell, 0, 8, place * 8);
  };
  let runs = 0;
  let latencies = 0;
  let waiting = false;
  // One write for each turn of the event loop, because a write is a system call.
  const flush = () => {
    waiting = false;
    put(slot, runs);
  };
  return (asked) => {
    runs += 1;
    if (asked) {
      const taken = microseconds() - BigInt(asked);
      put(noted + 1 + (latencies % kept), taken > 0n ? taken : 0n);
      latencies += 1;
      put(noted, latencies);
    }
    if (!waiting) {
      waiting = true;
      setImmediate(flush);
    }
  };
}

function work(size, path, ...places) {
  const ran = counting(path, ...places.map(Number));
  const worker = {
    connectionString: dsn,
    concurrentJobs: CONCURRENT_JOBS,
    maxPoolSize: CONCURRENT_JOBS + 1,
    localQueue: { size: Number(size) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const fetch = async (payload) => ran(payload.t);
  process.stdin.once("data", () => run({ preset: { worker }, taskList: { fetch } }));
  // When whoever measures is gone, nobody is left to stop this worker.
  process.stdin.on("end", () => process.exit(1));
  console.log("ready");
}

const operations = { setup, single, paced, bulk, delayed, work };
const answer = await operations[operation](...words);
if (operation !== "work") console.log(JSON.stringify(answer ?? null));
