import { parseArgs } from "node:util";
import { SafetensorsError } from "@halfstep/safetensors";
import { type ConvertOptions, type ConvertProgress, convertToSafetensors } from "../convert.js";
import { quote, TorchFileError } from "../error.js";

/** What a run printed, and its exit code. */
export interface CliResult {
  readonly output: string;
  readonly error: string;
  /** 0; 2 for usage or input; 4 where storage failed. */
  readonly exitCode: 0 | 2 | 4;
}

const help = `Converts weights to safetensors, without Python and without executing anything in them.

  npx halfstep-convert [options] FROM TO

FROM is a checkpoint of torch (.pt, .pth, .th, .bin), a safetensors file, an index of several files (*.index.json), or a folder
with one of these. TO is the safetensors file. It is compared with FROM before it takes its place.

  --dtype NAME  store floats as float32, float16 or bfloat16 (default: as they are)
  --key PATH    the dict in a checkpoint that has the tensors: generator, ema.state_dict, "" for the outermost
                (default: the model's state dict)
  --json        print JSON
  --help, -h    print this

Exit codes: 0 done, 2 wrong usage or unreadable weights, 4 storage.
`;

const dtypes = ["float32", "float16", "bfloat16"] as const;

/**
 * The command line tool without the process.
 * @param showProgress writes to a terminal
 */
export async function run(
  args: readonly string[],
  showProgress: (text: string) => void,
): Promise<CliResult> {
  try {
    return { output: await convert(args, showProgress), error: "", exitCode: 0 };
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined) throw error;
    return { output: "", error: `halfstep-convert: ${messageOf(error)}\n`, exitCode };
  }
}

async function convert(
  args: readonly string[],
  showProgress: (text: string) => void,
): Promise<string> {
  const { values, positionals } = parse(args);
  if (values.help) return help;
  const [from, to, ...more] = positionals;
  if (from === undefined || to === undefined || more.length > 0)
    throw new UsageError("name the weights and the new file, or see --help");
  if (!to.endsWith(".safetensors"))
    throw new UsageError(`${to}: the new file is called *.safetensors`);
  const progress = progressLine(showProgress);
  const converted = await convertToSafetensors(from, to, {
    dtype: dtypeOf(values.dtype),
    key: values.key,
    onProgress: progress.update,
  })
    .catch((error: unknown) => {
      throw namingFile(error, to);
    })
    .finally(progress.end);
  if (values.json) return `${JSON.stringify({ from, to, ...converted })}\n`;
  const kinds = Object.entries(converted.dtypes).map(([dtype, count]) => `${count} ${dtype}`);
  const done = `${to}: ${converted.tensors} tensors (${kinds.join(", ")}), ${megabytes(converted.bytes)} MB, compared with ${from}\n`;
  return done + skippedLine(converted.skipped);
}

/** Keys of checkpoints may hold anything: they are quoted. */
function skippedLine(skipped: readonly string[]): string {
  if (skipped.length === 0) return "";
  const keys = skipped.slice(0, 8).map(quote).join(", ");
  return `not written, and with tensors, too: ${keys}${skipped.length > 8 ? `, and ${skipped.length - 8} more` : ""} (--key chooses one)\n`;
}

class UsageError extends Error {}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        dtype: { type: "string" },
        key: { type: "string" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\. (?=To specify)|\n/);
    throw new UsageError(`${sentence.trim()}; see --help`);
  }
}

function dtypeOf(name: string | undefined): ConvertOptions["dtype"] {
  const found = dtypes.find((dtype) => dtype === name);
  if (name !== undefined && found === undefined)
    throw new UsageError(`--dtype ${name} is none of ${dtypes.join(", ")}`);
  return found;
}

/** A line that overwrites itself. */
function progressLine(show: (text: string) => void) {
  let shown = "";
  return {
    update: ({ phase, bytes, totalBytes }: ConvertProgress): void => {
      const share = totalBytes === 0 ? 100 : Math.floor((100 * bytes) / totalBytes);
      const text = `${phase === "write" ? "writing" : "checking"} ${share} % of ${megabytes(totalBytes)} MB`;
      if (text === shown) return;
      show(`\r${text.padEnd(shown.length)}`);
      shown = text;
    },
    end: (): void => {
      if (shown !== "") show(`\r${" ".repeat(shown.length)}\r`);
    },
  };
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 1e6 ? 3 : 1);

const storageFaults = ["ENOSPC", "EDQUOT", "EROFS", "EIO", "EFBIG"];
const inputFaults = ["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM"];

/** Undefined for errors of the program itself. */
function exitCodeOf(error: unknown): 2 | 4 | undefined {
  if (
    error instanceof UsageError ||
    error instanceof TorchFileError ||
    error instanceof SafetensorsError
  )
    return 2;
  const { code = "" } = error as NodeJS.ErrnoException;
  if (storageFaults.includes(code)) return 4;
  return inputFaults.includes(code) ? 2 : undefined;
}

/** An error of the disk with the new file in its message: what the system says of a write names none. */
function namingFile(error: unknown, to: string): unknown {
  const { code = "", message } = error as NodeJS.ErrnoException;
  if (!storageFaults.includes(code)) return error;
  const reason = code === "ENOSPC" ? "no space left on the disk" : message;
  return Object.assign(
    new Error(`${to} cannot be written (${reason}): make room, or choose a place on another disk`, {
      cause: error,
    }),
    { code },
  );
}

function messageOf(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return `${path}: there is no such file or folder: check the path`;
  return path === undefined ? message : `${path}: ${message}`;
}
