import { autocast } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { Mlp } from "@halfstep/models";
import { SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  crossEntropy,
  flatten,
  type Plan,
  type PlannedLaunch,
  type PlannedValue,
} from "@halfstep/tensor";
import { allPasses, type PassName } from "@halfstep/tensor/internals";

const blue = "#3d78b4";
const green = "#5a9e6f";
const grey = "#8a8f98";
const red = "#d1495b";
const yellow = "#d9a441";
const pale = "#c3c7cd";

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly color: string;
  readonly text: string;
}

/** The step of the guide: two linear layers in float16, with loss scaling and SGD. */
function planOf(passes: readonly PassName[]): Plan {
  const runtime = cpuRuntime({ passes });
  const model = new Mlp(runtime, { sizes: [16, 32, 4], seed: 0 });
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), { lr: 0.1 });
  const scaler = new GradScaler(ampPrimitives(runtime));
  const step = () => {
    const x = runtime.tensor(new Float32Array(8 * 16), [8, 16]);
    const labels = runtime.tensor(new Uint32Array(8));
    const loss = autocast({ dtype: "float16" }, () => crossEntropy(model.forward(x), labels));
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss;
  };
  return runtime.plan(step);
}

/** Which launches of the recording each launch of the plan stands for. */
export function drawLaunches(): string {
  const rowHeight = 20;
  const [leftEnd, rightStart] = [300, 500];
  const recorded = planOf([]).launches;
  const planned = planOf(allPasses).launches;
  const top = (row: number): number => 40 + row * rowHeight;
  // A planned launch stands beside the launches that it stands for, and below the one before it.
  let free = 0;
  const rows = planned.map(({ recorded: positions }) => {
    const middle = positions.reduce((a, b) => a + b, 0) / positions.length;
    const row = Math.max(middle, free);
    free = row + 1;
    return row;
  });
  const known = new Set(planned.flatMap(({ recorded: positions }) => positions));
  const left = recorded.map((launch, i) => {
    const color = known.has(i) ? colorOf(launch) : pale;
    return box({ x: 20, y: top(i), width: leftEnd - 20, color, text: titleOf(launch) });
  });
  const right = planned.map((launch, i) =>
    box({
      x: rightStart,
      y: top(rows[i] ?? 0),
      width: 380,
      color: colorOf(launch),
      text: titleOf(launch),
    }),
  );
  const lines = planned.flatMap((launch, i) =>
    launch.recorded.map((position) => {
      const [from, to] = [top(position) + 8, top(rows[i] ?? 0) + 8];
      const middle = (leftEnd + rightStart) / 2;
      return `<path d="M${leftEnd} ${from}C${middle} ${from} ${middle} ${to} ${rightStart} ${to}" fill="none" stroke="${colorOf(launch)}"/>`;
    }),
  );
  const titles = [
    label(20, 24, `recorded: ${recorded.length} launches`),
    label(rightStart, 24, `planned: ${planned.length} launches`),
  ];
  const title = "Launches of a training step, as recorded and as planned";
  return svg(top(recorded.length) + 30, title, [
    ...titles,
    ...lines,
    ...left,
    ...right,
    ...legend(top(recorded.length) + 4, [
      [blue, "forward"],
      [green, "backward"],
      [red, "check, control, update"],
      [pale, "folded into others, or not needed"],
    ]),
  ]);
}

/** Which values share which slot of memory, and when. */
export function drawMemory(): string {
  const { launches, slots, values } = planOf(allPasses);
  const [start, column, rowHeight] = [150, 55, 34];
  const x = (launch: number): number => start + (launch + 1) * column;
  const rects = values.map(({ slot, first, last, role, bytes }) => {
    const from = x(Math.max(first, -1));
    const to = x(Math.min(last, launches.length - 1)) + column;
    const y = 40 + slot * rowHeight;
    return [
      `<rect x="${from + 1}" y="${y}" width="${to - from - 2}" height="26" rx="4" fill="${roleColors[role]}"/>`,
      label(from + 8, y + 18, to - from > column ? `${role}, ${bytes} B` : `${bytes} B`, "white"),
    ].join("");
  });
  const names = slots.map((bytes, slot) =>
    label(20, 58 + slot * rowHeight, `slot ${slot}, ${bytes} B`),
  );
  const numbers = launches.map((_, i) => label(x(i) + column / 2 - 5, 30, `${i}`));
  const bottom = 40 + slots.length * rowHeight;
  return svg(bottom + 40, "Slots of memory and the values that share them, by launch", [
    label(20, 30, "launch"),
    label(x(-1) + 10, 30, "host"),
    ...numbers,
    ...names,
    ...rects,
    ...legend(bottom + 8, [
      [blue, "activation"],
      [green, "gradient"],
      [yellow, "temporary"],
      [red, "kept: outlives the step"],
    ]),
  ]);
}

const roleColors: Readonly<Record<PlannedValue["role"], string>> = {
  activation: blue,
  gradient: green,
  temporary: yellow,
  kept: red,
  input: grey,
};

/** Red is what no op computes: the scaler's and the optimizer's launches. */
const colorOf = ({ isBackward, note }: PlannedLaunch): string =>
  (note?.ops ?? []).length === 0 ? red : isBackward ? green : blue;

/** The kernel, and the module whose op it computes. A launch of `identity` changes the dtype and nothing else. */
function titleOf({ launch, note }: PlannedLaunch): string {
  const name = launch.kernel.name === "identity" ? "cast" : launch.kernel.name;
  const module = note?.ops.find((op) => op.module !== "")?.module;
  return module === undefined ? name : `${name} · ${module}`;
}

const box = ({ x, y, width, color, text }: Box): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="16" rx="3" fill="${color}"/>${label(x + 6, y + 12, text, "white")}`;

const legend = (y: number, entries: readonly (readonly [string, string])[]): string[] =>
  entries.map(
    ([color, text], i) =>
      `<rect x="${20 + i * 200}" y="${y}" width="14" height="14" rx="3" fill="${color}"/>${label(40 + i * 200, y + 12, text)}`,
  );

const label = (x: number, y: number, text: string, color = grey): string =>
  `<text x="${x}" y="${y}" fill="${color}">${text}</text>`;

function svg(height: number, title: string, content: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 ${height}" font-family="sans-serif" font-size="12">`;
  return [head, `<title>${title}</title>`, ...content, "</svg>", ""].join("\n");
}
