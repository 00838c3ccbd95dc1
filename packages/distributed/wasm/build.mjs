// `npm run build:wasm`: assembles `kernels.mjs` with wabt into `src/wire/sums/module.ts`, which is committed, so that installing the
// package needs no toolchain. The same text and wabt give the same bytes (`src/wire/sums/sums.test.ts`).
import { writeFileSync } from "node:fs";
import wabt from "wabt";
import { pieceLength, regions, text } from "./kernels.mjs";

/** The source of `src/wire/sums/module.ts`. */
export async function generate() {
  const module = (await wabt()).parseWat("kernels.wat", text, { simd: true });
  const bytes = Buffer.from(module.toBinary({}).buffer);
  module.destroy();
  return `// Made by \`npm run build:wasm\` from wasm/kernels.mjs. Do not edit.

/** The module, ${bytes.length.toLocaleString("en")} bytes, in hexadecimal digits. */
export const moduleDigits: string =
  "${bytes.toString("hex")}";

/** How many elements the regions hold. */
export const pieceLength = ${pieceLength};

/** Byte offsets in the module's memory. */
export const regions = { sums: ${regions.sums}, numbers: ${regions.numbers} } as const;
`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(new URL("../src/wire/sums/module.ts", import.meta.url), await generate());
}
