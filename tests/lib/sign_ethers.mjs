// Transactions that ethers makes and signs: node sign_ethers.mjs ETHERS SEED COUNT KEY SELECTORS; a line of JSON each
import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";

const [folder, seed, count, key, selectors] = process.argv.slice(2);
const { Wallet } = await import(pathToFileURL(`${folder}/node_modules/ethers/lib.esm/index.js`));
const wallet = new Wallet("0x" + key);
let state = seed;

function bytes(n) {
  let made = Buffer.alloc(0);
  while (made.length < n) {
    state = createHash("sha256").update(state).digest("hex");
    made = Buffer.concat([made, Buffer.from(state, "hex")]);
  }
  return made.subarray(0, n);
}
// a number of up to that many bits; small ones as often as large ones
function number(bits) {
  const take = bytes(1)[0] % (bits + 1);
  return take === 0 ? 0n : BigInt("0x" + bytes(32).toString("hex")) >> BigInt(256 - take);
}

for (let i = 0; i < Number(count); i++) {
  const call = bytes(1)[0] % 3 === 0 ? "0x" : "0x" + selectors.split(",")[bytes(1)[0] % 2] + bytes(Number(number(9))).toString("hex");
  const tip = number(40);
  const made = { requestId: `${seed}-${i}`, chainId: Number(number(52)) || 1, to: "0x" + bytes(20).toString("hex"), value: String(number(255)),
                 data: call, nonce: Number(number(52)), gasLimit: String(100000n + number(24)), createdAt: 1 };
  if (bytes(1)[0] % 2)
    made.gasPrice = String(number(60));
  else
    Object.assign(made, { maxFeePerGas: String(tip + number(60)), maxPriorityFeePerGas: String(tip) });
  if (bytes(1)[0] % 2) {
    made.accessList = Array.from({ length: bytes(1)[0] % 3 }, () => ({
      address: "0x" + bytes(20).toString("hex"),
      storageKeys: Array.from({ length: bytes(1)[0] % 4 }, () => "0x" + bytes(32).toString("hex")),
    }));
  }
  const { requestId, createdAt, ...fields } = made;
  const raw = await wallet.signTransaction({ ...fields, type: made.gasPrice === undefined ? 2 : made.accessList === undefined ? 0 : 1 });
  console.log(JSON.stringify({ request: made, raw }));
}
