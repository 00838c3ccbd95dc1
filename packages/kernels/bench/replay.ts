/**
 * Host time of replaying a prepared pass: `npm run bench:replay`. Launches are nearly empty, so that the host never waits for the device.
 */
import type { Binding } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { fill } from "../src/copies/fill.js";

const launches = 64;
const rounds = 400;
const device = await requestDevice();
const numbers = (): Binding<GPUBuffer> => ({
  buffer: device.allocate(256),
  offset: 0,
  length: 64,
  dtype: "float32",
});
const pass = device.prepare(Array.from({ length: launches }, (_, i) => fill(numbers(), i)));
const encoding: number[] = [];
const whole: number[] = [];
for (let round = 0; round < rounds; round++) {
  const start = performance.now();
  const commands = device.gpu.createCommandEncoder();
  const encoder = commands.beginComputePass();
  const before = performance.now();
  pass.encode(encoder);
  encoding.push(performance.now() - before);
  encoder.end();
  device.submit([commands.finish()]);
  whole.push(performance.now() - start);
  await device.settled();
}
const median = (milliseconds: readonly number[]): string => {
  const sorted = [...milliseconds].sort((a, b) => a - b);
  return (((sorted[rounds >> 1] as number) * 1000) / launches).toFixed(2);
};
console.log(
  `${launches} launches, median of ${rounds}: ${median(encoding)} µs a launch to encode, ${median(whole)} µs with the encoder, its end and the submit`,
);
device.destroy();
