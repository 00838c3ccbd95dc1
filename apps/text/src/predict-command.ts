import { buffer } from "node:stream/consumers";
import { decodeText } from "@halfstep/data";
import { openRuntime, print, say, UsageError } from "@halfstep/trainer/cli";
import type { PredictCommand } from "./commands.js";
import { describeClose } from "./figures.js";
import { predict } from "./predict.js";
import { openTrained } from "./use-model.js";

/**
 * Prints the prediction for each text, empty ones too: `class TAB text`, `word/tag` words, or the text with its masks filled in. The lines
 * of the output belong to those of the input.
 */
export async function predictCommand(options: PredictCommand): Promise<number> {
  const texts = options.texts.length > 0 ? options.texts : await linesOfInput(options);
  if (texts.length === 0)
    throw new UsageError("there is no text: give some behind the flags, or on standard input");
  const saved = await openTrained(options.model, options);
  const { runtime, device, close } = await openRuntime({ ...options, onNote: say });
  const said = await predict({ runtime, device, saved, half: options.half }, texts);
  close();
  if (options.half) {
    const close = said.filter((prediction) => prediction.close).length;
    say(describeClose(close, said.length));
  }
  for (const prediction of said) print(options.json ? JSON.stringify(prediction) : prediction.line);
  return 0;
}

async function linesOfInput({
  encoding,
}: Pick<PredictCommand, "encoding">): Promise<readonly string[]> {
  const bytes = await buffer(process.stdin);
  const lines = decodeText(bytes, { name: "standard input", encoding }).split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
