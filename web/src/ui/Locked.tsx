// Without the token there is nothing to see: what to do about it.

import { useState } from "react";
import { useStore } from "./use";

export function Locked({ reason }: { reason: string }) {
  const store = useStore();
  const [given, setGiven] = useState("");
  const token = /token=([^&\s]+)/.exec(given)?.[1] ?? given.trim();
  return (
    <main className="locked">
      <h1>tcplab</h1>
      <p>Open the address that <code>tcplab ui</code> printed. It contains the access token.</p>
      {reason && <p role="alert" className="bad">{reason}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void store.start(token);
        }}
      >
        <label>
          Or paste the address or the token
          <input value={given} onChange={(event) => setGiven(event.target.value)} autoFocus type="password" autoComplete="off" />
        </label>
        <button className="primary" disabled={!token}>Open</button>
      </form>
    </main>
  );
}
