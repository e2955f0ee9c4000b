// Requests to the server: its errors, as text for people, and its clock.

/** The error of a request, with a text for people. `isPassing`: a retry may succeed. */
export class Refusal extends Error {
  isRefused = true;

  constructor(text, isPassing) {
    super(text);
    this.isPassing = isPassing;
  }
}

let aheadMs = 0;

/** The server's time in unix milliseconds, to the second: the browser's clock may be wrong. */
export const serverMs = () => Date.now() + aheadMs;

/** Sends a request to the server. Throws a `Refusal` with the server's text if it fails. */
export async function ask(path, signal, headers) {
  let response;
  try {
    response = await fetch(path, {signal, headers});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refusal('the server does not answer; see whether it still runs, then try again', true);
  }
  const date = Date.parse(response.headers.get('Date') ?? '');
  if (date) aheadMs = date - Date.now();
  if (response.ok) return response;
  let text;
  try {
    text = (await response.json()).error;
  } catch {
    // The answer does not come from our server, but from a proxy.
  }
  throw new Refusal(text ?? `the server answered ${response.status} for ${path}`, response.status >= 500);
}
