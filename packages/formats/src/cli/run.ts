import { parseArgs } from "node:util";
import type { FloatFormat, FormatName, FormatsByName, Rounding } from "../format.js";
import { formatOf } from "../format-of.js";
import { CliError } from "./errors.js";
import { histogramAsJson, histogramAsText, readHistogram } from "./histogram.js";
import { describeNumber, numbersAsJson, numbersAsText, parseNumber } from "./numbers.js";

/** The output of a run, and its exit code. */
export interface CliResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 0; 2 for usage or input; 4 where storage failed. */
  readonly exitCode: 0 | 2 | 4;
}

const names: readonly FormatName[] = Object.keys({
  float32: true,
  tfloat32: true,
  float16: true,
  bfloat16: true,
  float8e4m3fn: true,
  float8e5m2: true,
  float8e4m3fnuz: true,
  float8e5m2fnuz: true,
  float8e4m3b11fnuz: true,
  float8e4m3: true,
  float8e3m4: true,
  float8e8m0fnu: true,
  float6e2m3fn: true,
  float6e3m2fn: true,
  float4e2m1fn: true,
} satisfies Record<keyof FormatsByName, true>) as FormatName[];

const roundings: readonly Rounding[] = [
  "nearestEven",
  "nearestAway",
  "towardZero",
  "down",
  "up",
  "odd",
  "stochastic",
];

const help = `How number formats store numbers.

  npx @halfstep/formats [options] NUMBER…
  npx @halfstep/formats [options] --histogram FILE

NUMBER is what JavaScript reads (0.1, -6.5e-8, 0xff), a C99 hexadecimal float (0x1.8p-3), nan or inf.
For each format: its bits (sign, exponent, mantissa), the code in hexadecimal, the number stored, its error
(stored - NUMBER), and the ulp, the distance between the format's numbers there.

FILE is a .npy of little-endian float16, float32 or float64, or an .f32 of bare little-endian float32.
For each format: the shares expected to overflow, underflow to 0 and become subnormal, without a scale and at the
power of two that is recommended.

  --format NAME    only this format; several with commas or by repeating. One of
                   ${wrap(names, 92, 19)}
  --rounding NAME  ${wrap(roundings, 92, 19)}
  --bits U32       the random bits of --rounding stochastic
  --saturate       overflow becomes the largest number
  --json           print JSON; NaN and infinities are strings in it
  --help, -h       print this

Exit codes: 0; 2 wrong usage or input; 4 a file could not be read. 
Colours: on terminals, unless NO_COLOR is set; everywhere with FORCE_COLOR=1.
`;

/** The command line tool without the process. */
export function run(args: readonly string[], { color }: { readonly color: boolean }): CliResult {
  try {
    return { stdout: print(args, color), stderr: "", exitCode: 0 };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { stdout: "", stderr: `formats: ${error.message}\n`, exitCode: error.exitCode };
  }
}

function print(args: readonly string[], color: boolean): string {
  const { values, positionals } = parse(args);
  if (values.help) return help;
  const formats = formatsOf(values.format);
  if (values.histogram !== undefined) {
    const extra = positionals.length > 0 || values.rounding || values.bits || values.saturate;
    if (extra) {
      throw new CliError("--histogram takes no numbers, rounding or saturation: leave them out");
    }
    const histogram = readHistogram(values.histogram);
    return values.json ? histogramAsJson(histogram, formats) : histogramAsText(histogram, formats);
  }
  if (positionals.length === 0) throw new CliError("name a number, or see --help");
  const options = encodeOptions(values);
  const numbers = positionals.map((text) => describeNumber(parseNumber(text), formats, options));
  return values.json ? numbersAsJson(numbers) : numbersAsText(numbers, color);
}

function parse(args: readonly string[]) {
  // A leading space keeps parseArgs from taking a negative number for an option; Number() drops it.
  const escaped = args.map((arg) => (/^-(\.?\d|inf|nan)/i.test(arg) ? ` ${arg}` : arg));
  try {
    return parseArgs({
      args: escaped,
      allowPositionals: true,
      options: {
        format: { type: "string", multiple: true },
        rounding: { type: "string" },
        bits: { type: "string" },
        saturate: { type: "boolean" },
        histogram: { type: "string" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\. (?=To specify)|\n/);
    throw new CliError(`${sentence.trim()}; see --help`);
  }
}

function formatsOf(given: readonly string[] | undefined): readonly FloatFormat[] {
  const chosen = given?.flatMap((list) => list.split(",")).map((name) => name.trim()) ?? names;
  return chosen.map((name) => {
    const known = names.find((each) => each === name);
    if (known !== undefined) return formatOf(known);
    throw new CliError(`there is no format "${name}": use ${names.join(", ")}`);
  });
}

function encodeOptions(values: {
  readonly rounding?: string | undefined;
  readonly bits?: string | undefined;
  readonly saturate?: boolean | undefined;
}): { rounding: Rounding; saturate: boolean; bits?: number } {
  const rounding = roundings.find((each) => each === (values.rounding ?? "nearestEven"));
  if (rounding === undefined) {
    throw new CliError(`there is no rounding "${values.rounding}": use ${roundings.join(", ")}`);
  }
  const saturate = values.saturate ?? false;
  if ((rounding === "stochastic") !== (values.bits !== undefined)) {
    throw new CliError("--rounding stochastic and --bits go together");
  }
  if (values.bits === undefined) return { rounding, saturate };
  const bits = values.bits.trim() === "" ? Number.NaN : Number(values.bits);
  if (bits !== bits >>> 0) {
    throw new CliError(`--bits ${values.bits} is no integer from 0 to 4294967295`);
  }
  return { rounding, saturate, bits };
}

/** Words with commas, in lines of at most `width`, the later ones indented. */
function wrap(words: readonly string[], width: number, indent: number): string {
  let text = "";
  let column = 0;
  words.forEach((word, i) => {
    const piece = i < words.length - 1 ? `${word},` : word;
    if (column > 0 && column + piece.length + 1 > width) {
      text += `\n${" ".repeat(indent)}`;
      column = 0;
    }
    text += (column > 0 ? " " : "") + piece;
    column += piece.length + 1;
  });
  return text;
}
