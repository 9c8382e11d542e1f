//! Rollouts of pools, explored: a scale set that takes long, failing instances, nodes that come and go, drains,
//! controllers that crash in the middle, a policy that tags, an autoscaler. Thousands of seeds; a failure prints its
//! own.

use capz_planner::pool::{
    DeletePolicy, Instance, Numbers, ObservedPool, PoolMachine, PoolTarget, Resize, resize, sync,
};
use serde_json::{Value, json};

use super::pool::image_id;

/// Random numbers (xorshift64*).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() >> 33).unwrap() % bound
    }

    /// Whether an event with this probability in percent happens.
    fn in_hundred(&mut self, times: u32) -> bool {
        self.below(100) < times
    }
}

struct Slot {
    number: u32,
    version: u32,
    /// As Azure shows it.
    instance: Instance,
    ready: bool,
    /// Whether an object represents it, and how many reconciles its drain still takes.
    object: bool,
    marked: bool,
    draining: Option<u32>,
}

/// An instance that is being created.
fn instance(number: u32, version: u32) -> Instance {
    let set = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/mp";
    Instance::read(
        &json!({
            "id": format!("{set}/virtualMachines/{number}"),
            "properties": {
                "provisioningState": "Creating",
                "storageProfile": { "imageReference": { "id": image_id(version) } },
            },
        }),
        false,
    )
    .unwrap()
}

/// The set's document.
fn scale_set(version: u32, tags: u32) -> Value {
    let image = json!({ "id": image_id(version) });
    json!({
        "tags": { "policy": tags },
        "properties": { "virtualMachineProfile": { "storageProfile": { "imageReference": image } } },
    })
}

/// A scale set and its machines in Azure and Kubernetes.
struct World {
    draw: Draw,
    version: u32,
    capacity: u32,
    tags: u32,
    /// How many reconciles the operation on the set still takes.
    operation: u32,
    slots: Vec<Slot>,
    numbered: u32,
    desired: u32,
    surge: u32,
    max_unavailable: u32,
    policy: DeletePolicy,
    declared: u32,
    last_reconciled: Option<u32>,
    trouble: bool,
    /// How many machines of the declared model were created, and how many of these failed.
    made: u32,
    failed: u32,
    writes: u32,
    model_writes: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let desired = 1 + draw.below(10);
        let (surge, max_unavailable) = match draw.below(4) {
            0 => (1, 0),
            1 => (0, 1),
            2 => (1 + draw.below(3), 0),
            _ => (1 + draw.below(3), 1 + draw.below(2)),
        };
        let policy =
            [DeletePolicy::Oldest, DeletePolicy::Newest, DeletePolicy::Random][draw.below(3) as usize];
        let mut world = Self {
            draw,
            version: 1,
            capacity: 0,
            tags: 0,
            operation: 0,
            slots: Vec::new(),
            numbered: 0,
            desired,
            surge,
            max_unavailable,
            policy,
            declared: 1,
            last_reconciled: None,
            trouble: false,
            made: 0,
            failed: 0,
            writes: 0,
            model_writes: 0,
        };
        world.grow(desired);
        world.run_until_settled(200);
        world
    }

    /// Azure creates instances up to the capacity.
    fn grow(&mut self, capacity: u32) {
        self.capacity = capacity;
        let there = self.slots.iter().filter(|it| it.instance.state != "Deleting").count();
        for _ in there..capacity as usize {
            self.numbered += 1;
            self.made += u32::from(self.version == self.declared);
            self.slots.push(Slot {
                number: self.numbered,
                version: self.version,
                instance: instance(self.numbered, self.version),
                ready: false,
                object: false,
                marked: false,
                draining: None,
            });
        }
    }

    fn ready(&self) -> u32 {
        let ready = self
            .slots
            .iter()
            .filter(|it| it.ready && it.instance.state == "Succeeded" && it.draining.is_none());
        u32::try_from(ready.count()).unwrap()
    }

    /// Events without the controller.
    fn happen(&mut self) {
        self.operation = self.operation.saturating_sub(1);
        let draw = &mut self.draw;
        for one in &mut self.slots {
            match one.instance.state.as_str() {
                "Creating" if draw.in_hundred(40) => {
                    let fails = self.trouble && draw.in_hundred(15);
                    one.instance.state = if fails { "Failed" } else { "Succeeded" }.to_owned();
                    self.failed += u32::from(fails && one.version == self.declared);
                }
                "Succeeded" if !one.ready => one.ready = draw.in_hundred(40),
                // A node that is not ready for a while.
                "Succeeded" if self.trouble && draw.in_hundred(2) => one.ready = false,
                _ => {}
            }
            // Cluster API drains, then the object's finalizer is removed.
            match &mut one.draining {
                Some(0) => one.instance.state = "Deleting".to_owned(),
                Some(looks) => *looks -= 1,
                None => {}
            }
        }
        let leaving = self.slots.iter().filter(|it| it.instance.state == "Deleting" && it.object).count();
        self.capacity -= u32::try_from(leaving).unwrap();
        for one in &mut self.slots {
            one.object &= one.instance.state != "Deleting";
        }
        // Azure shows an instance that is being deleted for a while.
        let draw = &mut self.draw;
        self.slots.retain(|it| it.instance.state != "Deleting" || !draw.in_hundred(50));
        if self.trouble && self.draw.in_hundred(20) {
            self.tags += 1;
        }
    }

    /// One reconcile of the controller, which may crash in the middle of it.
    fn look(&mut self) {
        let set = scale_set(self.version, self.tags);
        let instances: Vec<Instance> = self.slots.iter().map(|it| it.instance.clone()).collect();
        let shown = instances.iter().filter(|it| !it.is_leaving());
        let numbers = Numbers {
            capacity: self.capacity,
            instances: u32::try_from(shown.clone().count()).unwrap(),
            latest: u32::try_from(shown.filter(|it| it.has_latest_model(&set)).count()).unwrap(),
            model_changed: self.version != self.declared,
            bootstrap_changed: false,
            desired: self.desired,
            surge: self.surge,
            external: false,
        };
        if self.operation == 0 {
            match resize(numbers) {
                Resize::Nothing => {}
                Resize::Capacity(capacity) => {
                    assert!(capacity <= self.desired + self.surge, "{numbers:?}");
                    self.write(capacity);
                }
                Resize::Model(capacity) => {
                    self.version = self.declared;
                    self.model_writes += 1;
                    self.write(capacity.unwrap());
                }
            }
        }
        if self.trouble && self.draw.in_hundred(10) {
            return;
        }
        let set = scale_set(self.version, self.tags);
        let machines: Vec<PoolMachine> = self
            .slots
            .iter()
            .zip(&instances)
            .filter(|(one, _)| one.object)
            .map(|(one, instance)| PoolMachine {
                provider_id: instance.provider_id.clone(),
                created: i64::from(one.number),
                state: Some(one.instance.state.clone()),
                ready: one.ready,
                // The object's status is from the last observation.
                latest: self.draw.in_hundred(50),
                marked: one.marked,
                leaving: one.draining.is_some(),
            })
            .collect();
        let pool = ObservedPool {
            scale_set: &set,
            instances: &instances,
            machines: &machines,
            last_reconciled: self.last_reconciled,
            operation: self.operation > 0,
            external: false,
        };
        let target = PoolTarget {
            desired: self.desired,
            max_unavailable: self.max_unavailable,
            policy: self.policy,
            rollout: false,
            keep_old_models: false,
            seed: self.draw.next(),
        };
        let decided = sync(pool, target);
        for index in decided.create {
            self.slots[index].object = true;
        }
        let before = self.ready();
        let mut chosen = Vec::new();
        for index in decided.delete {
            // The controller may crash before it has deleted all of them.
            if self.trouble && self.draw.in_hundred(5) {
                return;
            }
            let id = &machines[index].provider_id;
            let place = instances.iter().position(|it| it.provider_id == *id).unwrap();
            let looks = self.draw.below(5);
            self.slots[place].draining = Some(looks);
            chosen.push((
                machines[index].ready && machines[index].state.as_deref() == Some("Succeeded"),
                machines[index].marked,
            ));
        }
        let by_choice = chosen.iter().any(|(ready, marked)| *ready && !marked);
        let floor = self.desired.saturating_sub(self.max_unavailable);
        assert!(
            !by_choice || self.ready() >= floor,
            "{before} were ready, {} are, of {} with {} unavailable",
            self.ready(),
            self.desired,
            self.max_unavailable
        );
        self.last_reconciled = decided.last_reconciled.or(self.last_reconciled);
    }

    fn write(&mut self, capacity: u32) {
        assert!(capacity >= self.capacity, "the set never shrinks by a write");
        self.writes += 1;
        self.grow(capacity);
        self.operation = 1 + self.draw.below(4);
    }

    fn is_settled(&self) -> bool {
        self.version == self.declared
            && self.operation == 0
            && self.slots.len() == self.desired as usize
            && self.slots.iter().all(|it| {
                it.version == self.declared
                    && it.ready
                    && it.object
                    && it.draining.is_none()
                    && it.instance.state == "Succeeded"
            })
    }

    fn run_until_settled(&mut self, looks: u32) {
        for _ in 0..looks {
            if self.is_settled() {
                return;
            }
            self.happen();
            self.look();
        }
        panic!("it does not settle: {} of {}, capacity {}", self.ready(), self.desired, self.capacity);
    }
}

/// How many seeds each of these runs with; `CERULEAN_SEEDS` times as many, if it is set.
const SEEDS: u64 = 400;

/// Runs a world for each seed, and reports the failing one.
fn explore(run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let times = std::env::var("CERULEAN_SEEDS").ok().and_then(|it| it.parse::<u64>().ok()).unwrap_or(1);
    for seed in 1..=SEEDS * times {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(why) = result {
            panic!("seed {seed}: {:?}", why.downcast_ref::<String>());
        }
    }
}

/// CAPZ-139, CAPZ-143, CAPZ-144: one change of the model replaces each machine once, whatever fails meanwhile: failed
/// machines are created again, and nothing else. A policy's tags start no second rollout.
#[test]
fn one_change_of_the_model_replaces_each_machine_once() {
    explore(|seed| {
        let mut world = World::new(seed);
        (world.made, world.failed, world.writes, world.model_writes) = (0, 0, 0, 0);
        world.trouble = true;
        world.declared = 2;
        for _ in 0..400 {
            world.happen();
            world.look();
            let quiet = world
                .slots
                .iter()
                .all(|it| it.version == 2 && it.instance.state == "Succeeded" && it.draining.is_none());
            if quiet
                && world.version == 2
                && world.operation == 0
                && world.slots.len() == world.desired as usize
            {
                break;
            }
        }
        world.trouble = false;
        world.run_until_settled(400);
        assert_eq!(world.model_writes, 1);
        assert_eq!(
            world.made - world.failed,
            world.desired,
            "{} were made, {} failed",
            world.made,
            world.failed
        );
        // Later additions of others to the set change nothing.
        let writes = world.writes;
        for _ in 0..20 {
            world.tags += 1;
            world.happen();
            world.look();
        }
        assert!(world.is_settled());
        assert_eq!(world.writes, writes);
    });
}

/// CAPZ-145: an autoscaler changes the number of machines while they are replaced, and marks those to delete.
#[test]
fn an_autoscaler_and_a_rollout_come_to_the_same_end() {
    explore(|seed| {
        let mut world = World::new(seed);
        world.trouble = true;
        world.declared = 2;
        for _ in 0..100 {
            if world.draw.in_hundred(10) {
                world.desired += 1;
            } else if world.desired > 1 && world.draw.in_hundred(10) {
                world.desired -= 1;
                let place = world.draw.below(u32::try_from(world.slots.len()).unwrap()) as usize;
                world.slots[place].marked = true;
            }
            world.happen();
            world.look();
        }
        world.trouble = false;
        world.run_until_settled(600);
    });
}
