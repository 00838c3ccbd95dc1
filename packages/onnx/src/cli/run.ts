import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { NoAdapterError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { bfloat16, decodeArray, float16 } from "@halfstep/formats";
import { readSafetensors, SafetensorsError, type SafetensorsTensor } from "@halfstep/safetensors";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "@halfstep/tensor";
import { OnnxError } from "../errors.js";
import { describeAudit } from "../import/describe-audit.js";
import { auditHalf, type HalfAuditOptions } from "../import/half-audit.js";
import type { GraphInput } from "../import/read-graph.js";
import { openOnnx } from "../node.js";

/** What a run printed, and its exit code. */
export interface CliResult {
  readonly output: string;
  readonly error: string;
  /** 0; 2 for usage, files or inputs. */
  readonly exitCode: 0 | 2;
}

const help = `Says which operators of an ONNX graph break in half precision, and have to stay float32.

  npx halfstep-audit [options] MODEL.onnx INPUTS.safetensors

INPUTS has a tensor for each input of the graph, by its name, as save_file() of safetensors.numpy writes them. Take real ones: what breaks
depends on the numbers.

  --dtype NAME     float16 (default) or bfloat16
  --tolerance X    the largest error that is no harm, in terms of the largest number (default: 0.01)
  --cpu            compute on the CPU (default: on the GPU, if there is one)
  --json           print JSON
  --help, -h       print this

Exit codes: 0 done, 2 wrong usage, unreadable files, or a graph or inputs that are not supported.
`;

const dtypes = ["float16", "bfloat16"] as const;

/**
 * The command line tool without the process.
 * @param note called with a line that is no result
 */
export async function run(
  args: readonly string[],
  note: (line: string) => void,
): Promise<CliResult> {
  try {
    return { output: await audit(args, note), error: "", exitCode: 0 };
  } catch (error) {
    if (!isOfInput(error)) throw error;
    return { output: "", error: `halfstep-audit: ${messageOf(error)}\n`, exitCode: 2 };
  }
}

async function audit(args: readonly string[], note: (line: string) => void): Promise<string> {
  const { values, positionals } = parse(args);
  if (values.help) return help;
  const [file, given, ...more] = positionals;
  if (file === undefined || more.length > 0)
    throw new UsageError("name a model and its inputs, or see --help");
  const options = optionsOf(values);
  const { runtime, close } = await openRuntime(values.cpu === true, note);
  try {
    const model = await openOnnx(runtime, file);
    if (given === undefined)
      throw new UsageError(
        `name a file of inputs, too, with ${model.inputs.map(wanted).join(", ")}`,
      );
    const contents = await readFile(given);
    const { tensors } = naming(given, () => readSafetensors(contents));
    const inputs = naming(given, () => inputsOf(runtime, model.inputs, tensors));
    const found = await auditHalf(model, inputs, options);
    return values.json
      ? `${JSON.stringify({ model: file, inputs: given, ...options, ...found }, undefined, 2)}\n`
      : `${describeAudit(found, options).join("\n")}\n`;
  } finally {
    close();
  }
}

/** The tensors of the inputs of a graph. @throws OnnxError where one is missing, or has a dtype that none has */
function inputsOf(
  runtime: Runtime,
  inputs: readonly GraphInput[],
  tensors: Readonly<Record<string, SafetensorsTensor>>,
): Readonly<Record<string, Tensor>> {
  return Object.fromEntries(
    inputs.map((input) => {
      const tensor = tensors[input.name];
      if (!tensor) throw new OnnxError("inputs", `lacks the input ${wanted(input)}`);
      return [input.name, runtime.tensor(numbersOf(input.name, tensor), tensor.shape)];
    }),
  );
}

/** The elements of an input as a graph takes them: floats, or 32-bit integers for those of 64 bits and for masks. */
function numbersOf(
  name: string,
  tensor: SafetensorsTensor,
): Float32Array | Uint32Array | Int32Array {
  const { dtype, data } = tensor;
  if (dtype === "F16") return Float32Array.from(decodeArray(data as Uint16Array, float16));
  if (dtype === "BF16") return Float32Array.from(decodeArray(data as Uint16Array, bfloat16));
  if (dtype === "F32" || dtype === "F64") return Float32Array.from(data as Float32Array);
  if (!/^([IU](8|16|32|64)|BOOL)$/.test(dtype))
    throw new OnnxError("inputs", `has "${name}" in ${dtype}: save floats or integers`);
  const whole = Array.from(data as ArrayLike<number | bigint>, Number);
  const isSigned = whole.some((value) => value < 0);
  const beyond = whole.find((n) => n < -(2 ** 31) || n > (isSigned ? 2 ** 31 - 1 : 2 ** 32 - 1));
  if (beyond !== undefined)
    throw new OnnxError("inputs", `has ${beyond} in "${name}", which 32 bits do not hold`);
  return isSigned ? Int32Array.from(whole) : Uint32Array.from(whole);
}

/** An input for people: "input_ids" [batch, length]. */
const wanted = ({ name, shape }: GraphInput): string =>
  shape ? `"${name}" [${shape.join(", ")}]` : `"${name}"`;

async function openRuntime(
  onCpu: boolean,
  note: (line: string) => void,
): Promise<{ readonly runtime: Runtime; readonly close: () => void }> {
  const cpu = { runtime: cpuRuntime(), close: () => {} };
  if (onCpu) return cpu;
  try {
    const device = await requestDevice();
    return { runtime: gpuRuntime(device), close: () => device.destroy() };
  } catch (error) {
    if (!(error instanceof NoAdapterError)) throw error;
    note("no WebGPU adapter: computing on the CPU");
    return cpu;
  }
}

class UsageError extends Error {}

/** An error of a file's contents, with the file's name before it. */
class FileError extends Error {}

function naming<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof OnnxError || error instanceof SafetensorsError)
      throw new FileError(`${file}: ${error.message}`, { cause: error });
    throw error;
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        dtype: { type: "string" },
        tolerance: { type: "string" },
        cpu: { type: "boolean" },
        json: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    const [sentence = ""] = (error as Error).message.split(/\. (?=To specify)|\n/);
    throw new UsageError(`${sentence.trim()}; see --help`);
  }
}

interface Given {
  readonly dtype?: string | undefined;
  readonly tolerance?: string | undefined;
}

function optionsOf({ dtype: name = "float16", tolerance: text = "0.01" }: Given): HalfAuditOptions {
  const dtype = dtypes.find((each) => each === name);
  if (!dtype) throw new UsageError(`--dtype ${name} is none of ${dtypes.join(", ")}`);
  const tolerance = Number(text);
  if (!(tolerance > 0 && tolerance < 1))
    throw new UsageError(`--tolerance ${text} must be a number between 0 and 1`);
  return { dtype, tolerance };
}

/** Faults of the system that say that a file cannot be read. */
const readFaults = ["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM"];

const isOfInput = (error: unknown): boolean =>
  error instanceof UsageError ||
  error instanceof FileError ||
  error instanceof OnnxError ||
  readFaults.includes((error as NodeJS.ErrnoException).code ?? "");

function messageOf(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? `${path}: there is no such file: check the path` : message;
}
