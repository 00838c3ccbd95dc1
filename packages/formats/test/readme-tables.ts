import * as wgsl from "../src/wgsl.js";
import { allFormats } from "./samples.js";

/** README's table of formats, from their definitions. */
export function formatTable(): string {
  const rows = allFormats.map((format) => {
    const { name, bits, exponentBits, mantissaBits, isSigned, bias, finfo, hasInfinity } = format;
    return [
      `\`${name}\``,
      `${bits} = ${isSigned ? "1 + " : ""}${exponentBits} + ${mantissaBits}`,
      bias,
      digits(finfo.max),
      digits(finfo.smallestNormal),
      finfo.smallestSubnormal === finfo.smallestNormal ? "none" : digits(finfo.smallestSubnormal),
      digits(finfo.eps),
      finfo.decimalDigits,
      hasInfinity ? "yes" : "no",
      nanText[format.nanEncoding],
    ];
  });
  return table(
    [
      "format",
      "bits: sign, exponent, mantissa",
      "bias",
      "largest",
      "smallest normal",
      "smallest",
      "eps",
      "digits",
      "∞",
      "NaN",
    ],
    rows,
  );
}

/** README's table of WGSL sources: each constant and what it declares. */
export function wgslTable(): string {
  const rows = Object.entries(wgsl)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, source]) => {
      const signature = /^fn [^{]*(?= \{)/m.exec(source)?.[0];
      return [`\`${name}\``, `\`${signature}\``];
    });
  return table(["constant", "declares"], rows);
}

const nanText = {
  ieee: "yes",
  allOnes: "all ones",
  negativeZero: "instead of −0",
  none: "no",
} as const;

const digits = (value: number): string => {
  const rounded = Number(value.toPrecision(5));
  return (rounded < 1e-4 ? rounded.toExponential() : String(rounded)).replace("e+", "e");
};

const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |\n`).join("");
