import {
  bfloat16,
  type FloatFormat,
  float8e4m3fn,
  float8e5m2,
  float16,
  float32,
} from "../src/index.js";
import { allFormats } from "./samples.js";

const width = 900;
const left = 150;
const rowHeight = 24;
const red = "#d1495b";
const green = "#5a9e6f";
const blue = "#3d78b4";
const grey = "#8a8f98";

/** Where each bit of a code belongs: sign, exponent, mantissa. */
export function drawLayouts(): string {
  const cell = 20;
  const rows = allFormats.map((format, row) => {
    const y = 34 + row * rowHeight;
    const { bits, mantissaBits, exponentBits, isSigned } = format;
    const cells = Array.from({ length: bits }, (_, bit) => {
      const fromRight = bits - 1 - bit;
      const color =
        fromRight < mantissaBits ? blue : fromRight < mantissaBits + exponentBits ? green : red;
      return `<rect x="${left + bit * cell}" y="${y}" width="${cell - 2}" height="18" rx="3" fill="${color}"/>`;
    });
    const note = `${isSigned ? "1 + " : ""}${exponentBits} + ${mantissaBits}`;
    return [
      label(left - 10, y + 14, format.name, "end"),
      ...cells,
      label(left + bits * cell + 6, y + 14, note),
    ];
  });
  const legend = [
    [red, "sign"],
    [green, "exponent"],
    [blue, "mantissa"],
  ].map(
    ([color, text], i) =>
      `<rect x="${left + i * 110}" y="10" width="14" height="14" rx="3" fill="${color}"/>${label(left + 20 + i * 110, 22, text as string)}`,
  );
  return svg(34 + allFormats.length * rowHeight + 8, "Bits of the formats", [
    ...legend,
    ...rows.flat(),
  ]);
}

/** From the smallest to the largest positive number, on a logarithmic axis. */
export function drawRanges(): string {
  const right = 810;
  const start = 235;
  const bottom = 16 + allFormats.length * rowHeight;
  const x = (value: number): number =>
    start + ((Math.log10(value) + 46) / (39 + 46)) * (right - start);
  const grid = [-40, -30, -20, -10, 0, 10, 20, 30].map((power) => {
    const at = tenth(x(10 ** power));
    return `<line x1="${at}" y1="10" x2="${at}" y2="${bottom}" stroke="#e3e5e8"/>${label(at, bottom + 16, power === 0 ? "1" : `1e${power}`, "middle")}`;
  });
  const rows = allFormats.map(({ name, finfo }, row) => {
    const y = 14 + row * rowHeight;
    const { smallestSubnormal, smallestNormal, max } = finfo;
    const bar = (from: number, to: number, color: string): string =>
      `<rect x="${tenth(x(from))}" y="${y}" width="${tenth(x(to) - x(from))}" height="16" fill="${color}"/>`;
    return [
      label(left - 10, y + 13, name, "end"),
      bar(smallestSubnormal, smallestNormal, "#a9c6e3"),
      bar(smallestNormal, max, blue),
      label(tenth(x(max)) + 5, y + 13, digits(max, 5)),
      label(tenth(x(smallestSubnormal)) - 5, y + 13, digits(smallestSubnormal, 3), "end"),
    ];
  });
  const legend = [
    `<rect x="${left}" y="${bottom + 30}" width="14" height="14" fill="${blue}"/>`,
    label(left + 20, bottom + 42, "normal numbers"),
    `<rect x="${left + 150}" y="${bottom + 30}" width="14" height="14" fill="#a9c6e3"/>`,
    label(left + 170, bottom + 42, "subnormal numbers: fewer digits toward the left"),
  ];
  return svg(bottom + 54, "Ranges of the formats", [...grid, ...rows.flat(), ...legend]);
}

/** The distance of neighbours over magnitude, both logarithmic: a step at each power of two. */
export function drawSpacing(): string {
  const right = 740;
  const top = 14;
  const bottom = 414;
  const x = (exponent: number): number => left + ((exponent + 30) / 50) * (right - left);
  const y = (exponent: number): number => bottom - ((exponent + 54) / 72) * (bottom - top);
  const grid = [-30, -24, -18, -12, -6, 0, 6, 12, 18].map(
    (power) =>
      `<line x1="${tenth(x(power))}" y1="${top}" x2="${tenth(x(power))}" y2="${bottom}" stroke="#e3e5e8"/>${label(tenth(x(power)), bottom + 16, `2^${power}`, "middle")}`,
  );
  const lines = [-48, -36, -24, -12, 0, 12].map(
    (power) =>
      `<line x1="${left}" y1="${tenth(y(power))}" x2="${right}" y2="${tenth(y(power))}" stroke="#e3e5e8"/>${label(left - 8, tenth(y(power)) + 4, `2^${power}`, "end")}`,
  );
  const shown: readonly [FloatFormat, string][] = [
    [float8e5m2, red],
    [float8e4m3fn, "#b86fc6"],
    [bfloat16, "#e08e2b"],
    [float16, blue],
    [float32, green],
  ];
  const curves = shown.flatMap(([format, color], row) => {
    const points: string[] = [];
    for (let exponent = -30; exponent < 20 && 2 ** exponent <= format.finfo.max; exponent++) {
      const height = tenth(y(Math.log2(format.ulp(2 ** exponent))));
      points.push(`${tenth(x(exponent))},${height}`, `${tenth(x(exponent + 1))},${height}`);
    }
    const key = top + 8 + row * 22;
    return [
      `<polyline points="${points.join(" ")}" fill="none" stroke="${color}" stroke-width="2.5"/>`,
      `<line x1="${right + 14}" y1="${key}" x2="${right + 34}" y2="${key}" stroke="${color}" stroke-width="2.5"/>`,
      label(right + 40, key + 4, format.name),
    ];
  });
  const axes = [
    label((left + right) / 2, bottom + 36, "magnitude", "middle"),
    label(8, top + 6, "distance to the"),
    label(8, top + 22, "next number"),
  ];
  return svg(bottom + 48, "Spacing of the formats", [...grid, ...lines, ...axes, ...curves]);
}

/** Why an update is lost: 2^-3 + 2^-14, where float16's numbers are 2^-13 apart. */
export function drawLostUpdate(): string {
  const weight = 2 ** -3;
  const update = 2 ** -14;
  const rows: readonly FloatFormat[] = [float32, float16, bfloat16];
  const x = (value: number): number => left + 40 + ((value - weight) / 2 ** -10) * 600;
  const body = rows.flatMap((format, row) => {
    const y = 60 + row * 80;
    const ulp = format.ulp(weight);
    const dense = ulp < 2 ** -16;
    const ticks: string[] = [];
    for (let value = weight; value <= weight + 2 ** -10; value += dense ? 2 ** -15 : ulp) {
      const at = tenth(x(value));
      ticks.push(
        `<line x1="${at}" y1="${y - (dense ? 4 : 9)}" x2="${at}" y2="${y + (dense ? 4 : 9)}" stroke="${grey}" stroke-width="${dense ? 1 : 2}"/>`,
      );
    }
    const result = format.round(weight + update);
    const text = result === weight ? "stays 2^-3: the update is lost" : "arrives";
    return [
      label(left - 10, y + 5, format.name, "end"),
      `<line x1="${tenth(x(weight))}" y1="${y}" x2="${tenth(x(weight + 2 ** -10))}" y2="${y}" stroke="${grey}"/>`,
      ...ticks,
      `<circle cx="${tenth(x(weight + update))}" cy="${y - 22}" r="4" fill="none" stroke="${red}" stroke-width="2"/>`,
      `<line x1="${tenth(x(weight + update))}" y1="${y - 18}" x2="${tenth(x(result))}" y2="${y - 6}" stroke="${red}" stroke-width="1.5"/>`,
      `<circle cx="${tenth(x(result))}" cy="${y}" r="5" fill="${red}"/>`,
      label(tenth(x(weight)) + 60, y - 18, `${text}; numbers are 2^${Math.log2(ulp)} apart`),
    ];
  });
  const ends = [
    label(tenth(x(weight)), 262, "2^-3", "middle"),
    label(tenth(x(weight + 2 ** -10)), 262, "2^-3 + 2^-10", "middle"),
    `<circle cx="${left + 40}" cy="14" r="4" fill="none" stroke="${red}" stroke-width="2"/>`,
    label(left + 50, 19, "2^-3 + 2^-14"),
    `<circle cx="${left + 160}" cy="14" r="5" fill="${red}"/>`,
    label(left + 170, 19, "what is stored"),
  ];
  return svg(276, "An update that float16 and bfloat16 lose", [...body, ...ends]);
}

const tenth = (value: number): number => Math.round(value * 10) / 10;

const digits = (value: number, count: number): string => {
  const rounded = Number(value.toPrecision(count));
  const text = rounded < 1e-4 ? rounded.toExponential() : String(rounded);
  return text.replace("e+", "e");
};

const label = (x: number, y: number, text: string, anchor = "start"): string =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}">${text}</text>`;

const svg = (height: number, title: string, body: readonly string[]): string =>
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-sans-serif, Helvetica, Arial, sans-serif" font-size="13" fill="#24292f">
<title>${title}</title>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${body.join("\n")}
</svg>
`;
