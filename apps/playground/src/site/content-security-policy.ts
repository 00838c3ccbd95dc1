/**
 * What the pages may load: their own files, and nothing else. It stands in every built page, so that it holds on hosts that
 * send no headers. `wasm-unsafe-eval` compiles WebAssembly, by which arrays are converted; it allows no JavaScript.
 */
export const contentSecurityPolicy: string = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
