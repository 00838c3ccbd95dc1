/** SHA-256 of a text's UTF-8, as hexadecimal digits. */
export const sha256OfText = (text: string): Promise<string> =>
  sha256OfBytes(new TextEncoder().encode(text));

/** SHA-256 of bytes, as hexadecimal digits. */
export async function sha256OfBytes(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
