// A program that talks like a lane's process, and measures nothing: what each process of a lane answers comes from FAKE_LANES,
// and what it was asked goes to a file of FAKE_LANES_FOLDER.
import { appendFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const lanes = JSON.parse(process.env.FAKE_LANES);
const folder = process.env.FAKE_LANES_FOLDER;
const usual = { result: [1, 2], milliseconds: 10, times: 10, dispatches: 3 };
let file;
let figures;

const calls = ({ dispatches }) => ({
  ...{ submits: 1, dispatches, buffers: 0, bindGroups: 0, pipelines: 0, writes: 0, maps: 0.5 },
});

function answer({ kind, lane, subject, calls: count, isBrief }) {
  if (kind === "open") {
    const number = readdirSync(folder).filter((name) => name.startsWith(lane)).length;
    file = join(folder, `${lane} ${number}`);
    figures = { ...usual, ...lanes[lane]?.[number] };
  }
  const about = [kind, subject?.name, isBrief && "briefly", count].filter(Boolean).join(" ");
  appendFileSync(file, `${about}\n`);
  if (about === figures.dies) process.exit(9);
  if (about === figures.fails) throw new Error("out of luck");
  const { milliseconds, times } = figures;
  switch (kind) {
    case "open":
      return { version: "1.2.3" };
    case "prepare":
      return { result: Float32Array.from(subject.workload === "limits" ? [0] : figures.result) };
    case "warmUp":
      return { milliseconds, hostMicroseconds: 50, callsPerStep: calls(figures), peakBytes: 64 };
    case "time":
      return { milliseconds: times, cpuMilliseconds: 2 * times };
  }
}

process.on("disconnect", () => process.exit(0));
process.on("message", ({ id, request }) => {
  try {
    process.send({ id, value: answer(request) });
  } catch (error) {
    process.send({ id, error: error.message });
  }
});
