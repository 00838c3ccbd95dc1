import { escapeHtml } from "./html.js";

/** An example of a model's output: a test image and its class, a generated text, a picture before and after. */
export interface Sample {
  /** The title. All members are plain text. */
  readonly title?: string | undefined;
  /** Pictures, shown side by side. */
  readonly pictures?: readonly SamplePicture[] | undefined;
  /** Shown with its line breaks. */
  readonly text?: string | undefined;
  /** The correct answer. */
  readonly label?: string | undefined;
  /** The model's answer; red where it differs from the label. */
  readonly prediction?: string | undefined;
}

/** A picture among the samples of a report. */
export interface SamplePicture {
  /** A PNG, JPEG or WebP file: it becomes a part of the page. `encodePng` of `@halfstep/trainer/node` makes one of pixels. */
  readonly bytes: Uint8Array;
  /** The caption: "before", "truth", … … */
  readonly caption?: string | undefined;
  /** Width in CSS pixels. Default: the width of the picture. Enlarged pictures show their pixels. */
  readonly width?: number | undefined;
}

/** Samples in rows, as HTML. */
export const samplesHtml = (samples: readonly Sample[]): string =>
  `<div class="samples">\n${samples.map(sampleHtml).join("\n")}\n</div>`;

function sampleHtml({ title, pictures = [], text, label, prediction }: Sample): string {
  const isWrong = label !== undefined && prediction !== undefined && label !== prediction;
  const line = (content: string | undefined, kind = ""): string =>
    content === undefined ? "" : `<div${kind}>${escapeHtml(content)}</div>`;
  return [
    `<div class="sample ${text === undefined ? "pictured" : "text"}">`,
    line(title, ' class="title"'),
    pictures.length === 0
      ? ""
      : `<div class="pictures">${pictures.map(pictureHtml).join("")}</div>`,
    text === undefined ? "" : `<pre>${escapeHtml(text)}</pre>`,
    line(label),
    line(prediction && `→ ${prediction}`, isWrong ? ' class="wrong"' : ""),
    "</div>",
  ].join("");
}

function pictureHtml({ bytes, caption, width }: SamplePicture): string {
  const size = width === undefined ? "" : ` width="${width}"`;
  const below = caption === undefined ? "" : `<figcaption>${escapeHtml(caption)}</figcaption>`;
  return `<figure><img src="data:${typeOf(bytes)};base64,${base64(bytes)}"${size} alt="${escapeHtml(caption ?? "")}">${below}</figure>`;
}

/** The media type, by the first bytes of the file. */
const typeOf = ([first, second]: Uint8Array): string => {
  if (first === 0xff && second === 0xd8) return "image/jpeg";
  return first === 0x52 && second === 0x49 ? "image/webp" : "image/png";
};

const base64 = (bytes: Uint8Array): string => {
  const piece = 2 ** 15;
  let text = "";
  for (let at = 0; at < bytes.length; at += piece)
    text += String.fromCharCode(...bytes.subarray(at, at + piece));
  return btoa(text);
};
