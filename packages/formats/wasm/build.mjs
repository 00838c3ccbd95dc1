// `npm run build:wasm`: assembles `kernels.mjs` with wabt into `src/wasm/module.ts`, which is committed, so that installing
// the package needs no toolchain. The same text and wabt give the same bytes (`src/wasm/module.test.ts`).
import { writeFileSync } from "node:fs";
import wabt from "wabt";
import { decodeParameters, encodeParameters, pieceLength, regions, text } from "./kernels.mjs";

/** The source of `src/wasm/module.ts`. */
export async function generate() {
  const module = (await wabt()).parseWat("kernels.wat", text, { simd: true });
  const bytes = Buffer.from(module.toBinary({}).buffer);
  module.destroy();
  const names = (list) => `[\n${list.map((name) => `  "${name}",\n`).join("")}]`;
  return `// Made by \`npm run build:wasm\` from wasm/kernels.mjs. Do not edit.

/** The module, ${bytes.length.toLocaleString("en")} bytes, in hexadecimal digits: compressed, they are shorter than base64. */
export const moduleDigits: string =
  "${bytes.toString("hex")}";

/** How many elements the regions hold. */
export const pieceLength = ${pieceLength};

/** Byte offsets in the module's memory. */
export const regions = {
${Object.entries(regions)
  .map(([name, offset]) => `  ${name}: ${offset},\n`)
  .join("")}} as const;

/** The order of the u32 in the parameter region of the encoding kernels. */
export const encodeParameters = ${names(encodeParameters)} as const;

/** The same of the decoding kernels. */
export const decodeParameters = ${names(decodeParameters)} as const;
`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(new URL("../src/wasm/module.ts", import.meta.url), await generate());
}
